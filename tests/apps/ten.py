"""Ten operator slices: five stateful operators of two slices each, two of them behind another one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import understudy as us

USERS = 500
SCHEMA = "user long, at timestamp, amount long"


def make(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    """Times lie within the epoch's second; the stream's clock is the epoch number."""
    micros = epoch * 1_000_000 + rng.integers(0, 1_000_000, rows)
    return pa.table(
        {
            "user": pa.array(rng.integers(0, USERS, rows), pa.int64()),
            "at": pa.array(micros, pa.timestamp("us", "UTC")),
            "amount": pa.array(rng.integers(1, 100, rows), pa.int64()),
        }
    )


app = us.Topology("ten", epoch=us.setting("epoch", "500 ms"))
payments = app.source("payments", us.sources.Generator(make, SCHEMA, rate=us.setting("rate", 2000), seed=11), slices=2)


@app.operator(payments, key="user", slices=2, output_mode="update")
def totals(rows: DataFrame) -> DataFrame:
    return rows.groupBy("user").agg(F.count("*").alias("n"), F.sum("amount").alias("sum"))


@app.operator(payments, key="user", slices=2, output_mode="update")
def largest(rows: DataFrame) -> DataFrame:
    return rows.groupBy("user").agg(F.max("amount").alias("amount"))


@app.operator(payments, key="user", slices=2, output_mode="append")
def windows(rows: DataFrame) -> DataFrame:
    grouped = rows.withWatermark("at", "2 seconds").groupBy("user", F.window("at", "3 seconds"))
    return grouped.agg(F.count("*").alias("n")).select("user", F.col("window.start").alias("start"), "n")


@app.operator(totals, key="user", slices=2, output_mode="update")
def changes(rows: DataFrame) -> DataFrame:
    return rows.groupBy("user").agg(F.count("*").alias("changes"), F.max("sum").alias("sum"))


@app.operator(windows, key="user", slices=2, output_mode="update")
def busiest(rows: DataFrame) -> DataFrame:
    return rows.groupBy("user").agg(F.max("n").alias("n"))


for stream in (largest, changes, busiest):
    app.sink(f"{stream.name}-out", stream, us.sinks.Parquet(stream.name))
