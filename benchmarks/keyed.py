"""The application of the failover benchmark: sums per key, with as many keys in the state as asked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import understudy as us

KEYS = us.setting("keys", 10_000)
ROWS = us.setting("rows", 10_000)
FILL = 10
"""The first epochs bring every key once; from then on an epoch touches some of them."""
SCHEMA = "key long, value long"


def make(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    keys = rng.integers(0, KEYS, rows)
    if epoch < FILL:
        keys = np.concatenate([keys, np.arange(epoch, KEYS, FILL)])
    return pa.table({"key": keys, "value": rng.integers(0, 1000, len(keys))})


def sums(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("sum"))


app = us.Topology("keyed", epoch=us.setting("epoch_s", 1.0))
rows = app.source("rows", us.sources.Generator(make, SCHEMA, rate=ROWS, seed=1))
totals = app.operator(rows, output_mode="update", name="totals")(sums)
app.sink("out", totals, us.sinks.Parquet("out"))
