"""Sessions and the funnel of a click stream: which visits ended, and how far along the way to the till they came.

    understudy run examples/clicks/app.py --nodes 3 --epochs 60
    understudy run examples/clicks/app.py --set data=views.csv

An epoch of a second stands for a minute of page views (--set speed=60), which are made up at --set rate=400 a second,
or read from a CSV file with a header and the columns user, page and at, sorted by time (--set data=FILE).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from clicks_views import SCHEMA, STAGES, views
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

import understudy as us

EPOCH_S = 1.0
app = us.Topology("clicks", epoch=EPOCH_S)

DATA = us.setting("data", "")
SPEED = us.setting("speed", 60.0)
RATE, SEED = us.setting("rate", 400.0), us.setting("seed", 0)
GAP = us.setting("gap", "3 minutes")


def make(epoch: int, _slice: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return views(epoch, rows, SPEED * EPOCH_S, rng)


clicks = app.source(
    "clicks",
    us.sources.Files(DATA, "csv", SCHEMA, event_time="at", speed=SPEED, options={"header": True})
    if DATA
    else us.sources.Generator(make, SCHEMA, rate=RATE, seed=SEED),
)


# Every open session is in the state, so it is large: it waits in memory on a second node.
@app.operator(clicks, key="user", slices=2, recovery=us.Recovery(scheme="passive_standby_hot"))
def sessions(clicks: DataFrame) -> DataFrame:
    """A visit ends when its user has been away for three minutes; it is delivered once, when no view can be missing."""
    session = F.session_window("at", GAP)
    visits = clicks.withWatermark("at", "1 minute").groupBy("user", session)
    path = F.sort_array(F.collect_list(F.struct("at", "page")))["page"]
    found = visits.agg(F.count("*").alias("views"), path.alias("path"))
    return found.select(
        "user",
        F.col("session_window.start").alias("start"),
        F.col("session_window.end").alias("end"),
        "views",
        reached("path").alias("reached"),
    )


def reached(path: str) -> Column:
    """How many stages of the funnel a path passes in their order, with any other pages in between."""
    stages = F.array(*[F.lit(stage) for stage in STAGES])
    return F.aggregate(path, F.lit(0), lambda done, page: F.when(page == F.get(stages, done), done + 1).otherwise(done))


# Five counters: a fresh node reads them faster than a standby would pay off.
@app.operator(sessions, output_mode="update", recovery=us.Recovery(scheme="deployed"))
def funnel(sessions: DataFrame) -> DataFrame:
    """How many visits have come at least as far as each stage, since the beginning."""
    names = F.array(F.lit("visit"), *[F.lit(stage) for stage in STAGES])
    passed = sessions.select(F.posexplode(F.slice(names, F.lit(1), F.col("reached") + 1)).alias("step", "stage"))
    return passed.groupBy("step", "stage").agg(F.count("*").alias("visits"))


app.sink("sessions-out", sessions, us.sinks.JsonLines("sessions"))
app.sink("funnel-out", funnel, us.sinks.JsonLines("funnel"))
