"""The application of the spare-capacity benchmark: sums per key, two slices, a load that jumps every half minute."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import understudy as us

BASE, PEAK = 5_000, us.setting("peak", 400_000)
EVERY_S, LENGTH_S = 30, 6


def rate(second: float) -> float:
    return PEAK if second >= EVERY_S and second % EVERY_S < LENGTH_S else BASE


def make(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return pa.table({"key": rng.integers(0, 5_000, rows), "value": rng.integers(0, 1000, rows)})


app = us.Topology("peaks", epoch="1 second")
rows = app.source("rows", us.sources.Generator(make, "key long, value long", rate=rate, seed=1), slices=2)


@app.operator(rows, key="key", slices=2, output_mode="update")
def sums(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("sum"))


app.sink("out", sums, us.sinks.Parquet("out"))
