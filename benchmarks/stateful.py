"""The application of the overhead benchmark: sums per key, nothing to protect it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import understudy as us

KEYS = us.setting("keys", 10_000)
ROWS = us.setting("rows", 10_000)
EPOCH_S = us.setting("epoch_s", 1.0)
SCHEMA = "key long, value long"


def make(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return pa.table({"key": rng.integers(0, KEYS, rows), "value": rng.integers(0, 1000, rows)})


def sums(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("sum"))


app = us.Topology("stateful", epoch=EPOCH_S, tentative_after=us.setting("tentative_after", "") or None)
rows = app.source("rows", us.sources.Generator(make, SCHEMA, rate=ROWS / EPOCH_S, seed=1))
totals = app.operator(rows, output_mode="update", recovery=us.Recovery(scheme=us.setting("scheme", "none")))(sums)
app.sink("out", totals, us.sinks.Parquet("out"))
