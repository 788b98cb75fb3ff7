"""Sums per key whose batches take as long as their rows say: overload without using the CPU."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import understudy as us

EVERY, LENGTH = 40, 5
NAP_MS = us.setting("nap_ms", 1800)
"""For some epochs in every forty a batch takes twice as long as an epoch."""


def make(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    keys = np.arange(rows) % 20
    nap = np.where((np.arange(rows) < 20) & (epoch % EVERY >= EVERY - LENGTH), NAP_MS // 10, 0)
    return pa.table({"key": keys, "value": rng.integers(0, 1000, rows), "nap": nap})


app = us.Topology("naps", epoch="1 second")
rows = app.source("rows", us.sources.Generator(make, "key long, value long, nap long", rate=200, seed=3))


@app.operator(rows, key="key", slices=2, output_mode="update")
def sums(rows: DataFrame) -> DataFrame:
    slept = F.expr("java_method('java.lang.Thread', 'sleep', nap)")
    standing_in = rows.select("key", "value", slept.alias("slept")).where("slept is not null")
    return standing_in.groupBy("key").agg(F.sum("value").alias("sum"))


app.sink("out", sums, us.sinks.Parquet("out"))
