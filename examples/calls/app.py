"""Phone fraud: numbers that call many others, briefly, and are never called themselves.

    understudy run examples/calls/app.py --nodes 3 --epochs 60

Every number gets a score from five features of its calls in a sliding window of 30 minutes; with enough points it is a
case. An epoch of a second stands for a minute (--set speed=60) of calls, which are made up: --set rate=300 a second,
--set people=3000; or read from a CSV file with a header and the columns caller, callee, at and seconds, sorted by time
(--set data=FILE).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from calls_records import SCHEMA, calls
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

import understudy as us

EPOCH_S = 1.0
app = us.Topology("calls", epoch=EPOCH_S)

DATA = us.setting("data", "")
SPEED = us.setting("speed", 60.0)
PEOPLE = us.setting("people", 3000)
RATE, SEED = us.setting("rate", 300.0), us.setting("seed", 0)
CASE = us.setting("points", 7)


def make(epoch: int, _slice: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return calls(epoch, rows, SPEED * EPOCH_S, PEOPLE, rng)


records = app.source(
    "records",
    us.sources.Files(DATA, "csv", SCHEMA, event_time="at", speed=SPEED, options={"header": True})
    if DATA
    else us.sources.Generator(make, SCHEMA, rate=RATE, seed=SEED),
)


@app.operator(records)
def ends(records: DataFrame) -> DataFrame:
    """Both ends of every call: what a number does, and what is done to it, meet under one key."""
    ends = [_end("caller", "callee", outgoing=True), _end("callee", "caller", outgoing=False)]
    return records.select(F.explode(F.array(*ends)).alias("end"), "at", "seconds").select("end.*", "at", "seconds")


def _end(number: str, other: str, *, outgoing: bool) -> Column:
    return F.struct(F.col(number).alias("number"), F.col(other).alias("other"), F.lit(outgoing).alias("out"))


# Features of every number in three windows: the largest state here, and the cases wait for it.
@app.operator(ends, key="number", slices=2, output_mode="update", recovery=us.Recovery(scheme="passive_standby_hot"))
def features(ends: DataFrame) -> DataFrame:
    """What a number did in half an hour, every ten minutes, as far as it is known; told again with every call."""
    window = F.window("at", "30 minutes", "10 minutes")
    answered = F.col("out") & (F.col("seconds") > 0)
    summed = ends.withWatermark("at", "10 minutes").groupBy(window, "number")
    found = summed.agg(
        F.count_if("out").alias("calls"),
        F.size(F.collect_set(F.when(F.col("out"), F.col("other")))).alias("callees"),
        F.count_if(answered).alias("answered"),
        F.coalesce(F.sum(F.when(answered, F.col("seconds"))), F.lit(0)).alias("talked"),
        F.count_if(~F.col("out")).alias("received"),
    )
    return found.select("number", F.col("window.start").alias("start"), *found.columns[2:])


def points() -> Column:
    """The score of a number: two points for each sign of a machine, one for those that people show as well."""
    signs = (
        (2, "calls >= 10"),
        (2, "callees * 10 >= calls * 9"),  # hardly anybody is called twice
        (2, "received = 0"),
        (1, "answered * 2 < calls"),
        (1, "talked < answered * 30"),  # half a minute on average
    )
    return sum((F.when(F.expr(sign), worth).otherwise(0) for worth, sign in signs), F.lit(0))


# One row for each case ever found, looked at by people: a checkpoint and a node that knows the plan will do.
@app.operator(features, output_mode="update", recovery=us.Recovery(scheme="deployed"))
def cases(features: DataFrame) -> DataFrame:
    """Numbers that had enough points in some window: their best score, and the most calls they made in a window."""
    scored = features.withColumn("points", points()).where(F.col("points") >= CASE)
    best = (F.max("points").alias("points"), F.max("calls").alias("calls"), F.min("start").alias("first"))
    return scored.groupBy("number").agg(*best)


app.sink("features-out", features, us.sinks.JsonLines("features"))
app.sink("cases-out", cases, us.sinks.JsonLines("cases"))
