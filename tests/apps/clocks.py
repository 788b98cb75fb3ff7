"""Operators with several watermarks, over inputs whose event times disagree: dense, sparse and ahead, fast, silent."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import understudy as us

USERS = 20
SCHEMA = "user int, at timestamp, amount long"
AHEAD_S, EVERY = 30, 5
"""The sparse input has rows in one of five epochs, half a minute ahead of the dense one."""


def _rows(rng: np.random.Generator, rows: int, first_s: float, late_s: int) -> pa.Table:
    late = np.where(rng.random(rows) < 0.1, rng.integers(0, late_s * 1_000_000, rows), 0)
    micros = int(first_s * 1_000_000) + rng.integers(0, 1_000_000, rows) - late
    return pa.table(
        {
            "user": pa.array(rng.integers(0, USERS, rows), pa.int32()),
            "at": pa.array(np.maximum(micros, 0), pa.timestamp("us", "UTC")),
            "amount": pa.array(rng.integers(1, 100, rows), pa.int64()),
        }
    )


def make_dense(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    """A second of event time an epoch; a tenth of the rows are up to eight seconds late."""
    return _rows(rng, rows, epoch, 8)


def make_sparse(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return _rows(rng, rows if epoch % EVERY == EVERY - 1 else 0, epoch + AHEAD_S, 2)


def make_fast(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    """Three seconds of event time an epoch, in every other epoch."""
    return _rows(rng, rows if epoch % 2 == 0 else 0, 3 * epoch, 2)


def make_silent(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return _rows(rng, 0, epoch, 2)


app = us.Topology("clocks", epoch=us.setting("epoch", "1 second"))
RATE = us.setting("rate", 200)


def source(name: str, make: Any, seed: int) -> Any:
    return app.source(name, us.sources.Generator(make, SCHEMA, rate=RATE, seed=seed))


dense, sparse = source("dense", make_dense, 11), source("sparse", make_sparse, 12)
fast, silent = source("fast", make_fast, 13), source("silent", make_silent, 14)


@app.operator(dense, sparse, input="correlated")
def matched(rows: DataFrame, others: DataFrame) -> DataFrame:
    """A row without a match comes out when the watermark has passed it."""
    left = rows.withWatermark("at", "2 seconds").alias("l")
    right = others.withWatermark("at", "2 seconds").alias("r")
    near = F.expr("l.user = r.user AND r.at BETWEEN l.at - INTERVAL 1 SECOND AND l.at")
    found = left.join(right, near, "left_outer")
    return found.select("l.user", "l.at", "l.amount", F.col("r.amount").alias("other"))


def united(*inputs: DataFrame) -> DataFrame:
    """Rows per window of three seconds; every input has a watermark of its own."""
    marked = [rows.withWatermark("at", "2 seconds") for rows in inputs]
    grouped = reduce(DataFrame.union, marked).groupBy(F.window("at", "3 seconds"))
    counted = grouped.agg(F.count("*").alias("n"), F.sum("amount").alias("sum"))
    return counted.select(F.col("window.start").alias("start"), "n", "sum")


@app.operator(dense, sparse, fast)
def merged(rows: DataFrame, others: DataFrame, third: DataFrame) -> DataFrame:
    return united(rows, others, third)


@app.operator(dense, silent, output_mode="update")
def unheard(rows: DataFrame, others: DataFrame) -> DataFrame:
    """The watermark never moves, so no row is ever late."""
    return united(rows, others)


for stream in (matched, merged, unheard):
    app.sink(f"{stream.name}-out", stream, us.sinks.Parquet(stream.name))
