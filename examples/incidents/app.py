"""Incidents that jam the traffic: reports of users joined with speeds, Su and Zhou 2016, query 2 of their Figure 11.

    understudy run examples/incidents/app.py --nodes 3 --epochs 60
    understudy run examples/incidents/app.py --nodes 4 --domains 2 --epochs 60 --fault kill:domain-1@epoch20

An epoch of a second stands for ten seconds (--set speed=10) of traffic: --set rate=400 positions a second, and a
quarter as many reports. --set replicas=6 of the eight slices have working secondaries.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from incidents_traffic import POSITIONS, REPORTS
from incidents_traffic import positions as make_positions
from incidents_traffic import reports as make_reports
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import understudy as us

EPOCH_S = 1.0
SPEED = us.setting("speed", 10.0)
RATE, SEED = us.setting("rate", 400.0), us.setting("seed", 0)
SLOW_KMH = us.setting("slow", 25)
WINDOW, NO_DELAY = "10 seconds", "0 seconds"

app = us.Topology(
    "incidents",
    epoch=EPOCH_S,
    tentative_after=us.setting("tentative_after", "1 s"),
    replicas=us.setting("replicas", 6),
)


def locate(epoch: int, _slice: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return make_positions(epoch, rows, SPEED * EPOCH_S, SEED, rng)


def tell(epoch: int, _slice: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return make_reports(epoch, rows, SPEED * EPOCH_S, SEED, rng)


positions = app.source("positions", us.sources.Generator(locate, POSITIONS, rate=RATE, seed=2 * SEED))
reports = app.source("reports", us.sources.Generator(tell, REPORTS, rate=RATE / 4, seed=2 * SEED + 1))


@app.operator(positions, key="segment", slices=2, recovery=us.Recovery(scheme="deployed"))
def speeds(positions: DataFrame) -> DataFrame:
    """The mean speed on every segment, in whole kilometres an hour, every ten seconds."""
    windows = positions.withWatermark("at", NO_DELAY).groupBy(F.window("at", WINDOW), "segment")
    means = windows.agg(F.expr("sum(kmh) div count(*)").alias("kmh"))
    return means.select("segment", F.col("window.end").alias("at"), "kmh")


@app.operator(reports, recovery=us.Recovery(scheme="deployed"))
def incidents(reports: DataFrame) -> DataFrame:
    """Reports about one segment within ten seconds are about one incident."""
    windows = reports.withWatermark("at", NO_DELAY).groupBy(F.window("at", WINDOW), "segment")
    return windows.agg(F.count("*").alias("reports")).select("segment", F.col("window.end").alias("since"), "reports")


# Both inputs are in its state for a minute, and output needs both: it shall be back soon.
@app.operator(
    incidents,
    speeds,
    key="segment",
    slices=2,
    input="correlated",
    recovery=us.Recovery(objective=us.setting("objective", 5.0)),
)
def jams(incidents: DataFrame, speeds: DataFrame) -> DataFrame:
    """Every slow time of a segment in the minute after an incident there."""
    known = incidents.withWatermark("since", NO_DELAY)
    # What is fast is left out before the watermark, in plain sight: Spark would move the condition there by itself.
    slow = speeds.where(F.col("kmh") <= SLOW_KMH).withWatermark("at", NO_DELAY)
    soon = (F.col("at") >= F.col("since")) & (F.col("at") <= F.col("since") + F.expr("interval 1 minute"))
    pairs = known.alias("i").join(slow.alias("s"), (F.col("i.segment") == F.col("s.segment")) & soon)
    return pairs.select(F.col("i.segment").alias("segment"), "since", "reports", "kmh")


@app.operator(jams, recovery=us.Recovery(scheme="deployed"))
def board(jams: DataFrame) -> DataFrame:
    """Each incident that jams, once, with the slowest speed and for how many tens of seconds it was slow."""
    cases = jams.withWatermark("since", "90 seconds").groupBy("since", "segment", "reports")
    return cases.agg(F.min("kmh").alias("slowest"), F.count("*").alias("slow_times"))


app.sink("shown", board, us.sinks.JsonLines("jams"))
