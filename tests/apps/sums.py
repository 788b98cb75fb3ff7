"""The smallest stateful topology: sums per key, shipped often."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import understudy as us

ROWS = us.setting("rows", 1000)
STATELESS = us.setting("stateless", 0)


def make(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return pa.table({"key": rng.integers(0, 100, rows), "value": rng.integers(0, 1000, rows)})


app = us.Topology("sums", epoch=us.setting("epoch", "1 second"))
rows = app.source("rows", us.sources.Generator(make, "key long, value long", rate=ROWS, seed=3))


recovery = us.Recovery(
    scheme=us.setting("scheme", "passive_replication"),
    guarantee=us.setting("guarantee", "precise"),
    ship_every=us.setting("ship_every", 3),
)


@app.operator(rows, output_mode="update", recovery=recovery)
def sums(rows: DataFrame) -> DataFrame:
    if STATELESS:
        return rows.where("value % 2 = 0").withColumnRenamed("value", "sum")
    return rows.groupBy("key").agg(F.sum("value").alias("sum"))


app.sink("out", sums, us.sinks.Parquet("out"))
