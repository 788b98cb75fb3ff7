"""The pages that are asked for most, by counts of counts: Su and Zhou 2016, query 1 of their Figure 11.

    understudy run examples/pages/app.py --nodes 3 --epochs 60
    understudy run examples/pages/app.py --nodes 4 --domains 2 --epochs 60 --fault kill:domain-1@epoch20

An epoch of a second stands for a minute (--set speed=60) of requests, which are made up at --set rate=400 a second and
source slice. The window of five minutes moves on by a minute. --set replicas=5 of the seven slices have working
secondaries.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pages_requests import SCHEMA, requests
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import understudy as us

EPOCH_S = 1.0
SPEED = us.setting("speed", 60.0)
RATE, SEED = us.setting("rate", 400.0), us.setting("seed", 0)
TOP = us.setting("top", 100)

app = us.Topology(
    "pages",
    epoch=EPOCH_S,
    tentative_after=us.setting("tentative_after", "1 s"),
    replicas=us.setting("replicas", 5),
)


def make(epoch: int, _slice: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return requests(epoch, rows, SPEED * EPOCH_S, rng)


logs = app.source("logs", us.sources.Generator(make, SCHEMA, rate=RATE, seed=SEED), slices=2)


# The only large state: five windows of every page and server. It shall be back soon when the plan leaves it out.
@app.operator(logs, key="server", slices=2, recovery=us.Recovery(objective=us.setting("objective", 5.0)))
def counts(logs: DataFrame) -> DataFrame:
    """How often each page was asked for, of every server, when a window is over."""
    windows = logs.withWatermark("at", "0 seconds").groupBy(F.window("at", "5 minutes", "1 minute"), "server", "page")
    return windows.agg(F.count("*").alias("n")).select("page", F.col("window.end").alias("end"), "n")


@app.operator(counts, key="page", slices=2, recovery=us.Recovery(scheme="deployed"))
def totals(counts: DataFrame) -> DataFrame:
    """The counts of all servers together, when the counts of a later window have come."""
    return counts.withWatermark("end", "0 seconds").groupBy("end", "page").agg(F.sum("n").alias("n"))


@app.operator(totals, recovery=us.Recovery(scheme="deployed"))
def hottest(totals: DataFrame) -> DataFrame:
    """The hundred pages with the largest totals; of two alike, the one with the smaller number."""
    ranked = F.sort_array(F.collect_list(F.struct((-F.col("n")).alias("less"), "page")))
    windows = totals.withWatermark("end", "0 seconds").groupBy("end").agg(F.slice(ranked, 1, TOP).alias("pages"))
    return windows.select("end", F.explode("pages.page").alias("page"))


app.sink("top", hottest, us.sinks.JsonLines("top"))
