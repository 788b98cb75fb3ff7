"""Operators that are not deterministic and do not say so, without state and with."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import understudy as us


def make(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return pa.table({"key": rng.integers(0, 30, rows)})


app = us.Topology("noise", epoch="500 ms")
rows = app.source("rows", us.sources.Generator(make, "key long", rate=100, seed=5))


@app.operator(rows)
def noise(rows: DataFrame) -> DataFrame:
    return rows.select("key", F.rand().alias("luck"))


@app.operator(rows, output_mode="update")
def drawn(rows: DataFrame) -> DataFrame:
    return rows.select("key", F.rand().alias("luck")).groupBy("key").agg(F.sum("luck").alias("luck"))


app.sink("out", noise, us.sinks.Parquet("out"))
app.sink("drawn-out", drawn, us.sinks.Parquet("drawn"))
