"""A stateless operator, then sums per key in two slices: small enough to be killed often."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import understudy as us


def make(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return pa.table({"key": rng.integers(0, 30, rows), "value": rng.integers(0, 1000, rows)})


app = us.Topology("chain", epoch="500 ms")
rows = app.source("rows", us.sources.Generator(make, "key long, value long", rate=200, seed=5))


@app.operator(rows)
def even(rows: DataFrame) -> DataFrame:
    return rows.where("value % 2 = 0")


@app.operator(even, key="key", slices=2, output_mode="update")
def sums(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(F.sum("value").alias("sum"), F.count("*").alias("n"))


app.sink("out", sums, us.sinks.Parquet("out"))
