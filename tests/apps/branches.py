"""Counts per key, then per group of keys: half of them goes on while a node is away."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import understudy as us


def make(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return pa.table({"key": rng.integers(0, 40, rows), "value": rng.integers(0, 1000, rows)})


app = us.Topology("branches", epoch="500 ms", tentative_after=us.setting("after", "500 ms"))
rows = app.source("rows", us.sources.Generator(make, "key long, value long", rate=200, seed=11), slices=2)
recovery = us.Recovery(ship_every=3)


@app.operator(rows, key="key", slices=2, output_mode="update", recovery=recovery)
def counts(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(F.count("value").alias("n"), F.sum("value").alias("total"))


@app.operator(counts, output_mode="update", recovery=recovery)
def groups(rows: DataFrame) -> DataFrame:
    return rows.groupBy((F.col("key") % 10).alias("tens")).agg(
        F.max("n").alias("most"), F.max("total").alias("largest")
    )


app.sink("out", groups, us.sinks.JsonLines("out"))
