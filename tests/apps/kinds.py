"""One operator of every stateful kind over the same rows, each with a sink of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

import understudy as us

USERS = 50
SCHEMA = "user int, at timestamp, amount long"
SPARSE = us.setting("sparse", 0)
"""With 1 the clicks come in one of five epochs and ahead of the payments: which payments are late depends on both."""


def make(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    """Times lie within the epoch's second, a few of them late; the stream's clock is the epoch number."""
    late = np.where(rng.random(rows) < 0.05, rng.integers(0, 4_000_000, rows), 0)
    micros = epoch * 1_000_000 + rng.integers(0, 1_000_000, rows) - late
    return pa.table(
        {
            "user": pa.array(rng.integers(0, USERS, rows), pa.int32()),
            "at": pa.array(np.maximum(micros, 0), pa.timestamp("us", "UTC")),
            "amount": pa.array(rng.integers(1, 100, rows), pa.int64()),
        }
    )


def make_sparse(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return make(epoch + 8, slice_index, rows if epoch % 5 == 0 else 0, rng)


class Running(StatefulProcessor):
    """The sum of all amounts of a user so far."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.total = handle.getValueState("total", StructType([StructField("sum", LongType())]))

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        before = (self.total.get() or (0,))[0]
        after = before + sum(row.amount for row in rows)
        self.total.update((after,))
        yield Row(user=key[0], sum=after)

    def close(self) -> None:
        pass


app = us.Topology("kinds", epoch=us.setting("epoch", "500 ms"))
RATE, SLICES = us.setting("rate", 400), us.setting("slices", 2)
payments = app.source("payments", us.sources.Generator(make, SCHEMA, rate=RATE, seed=7), slices=SLICES)
clicks = app.source("clicks", us.sources.Generator(make_sparse if SPARSE else make, SCHEMA, rate=RATE / 4, seed=8))


@app.operator(payments, key="user", slices=SLICES, output_mode="update")
def totals(rows: DataFrame) -> DataFrame:
    return rows.groupBy("user").agg(F.count("*").alias("n"), F.sum("amount").alias("sum"))


@app.operator(payments, output_mode="append")
def windows(rows: DataFrame) -> DataFrame:
    grouped = rows.withWatermark("at", "2 seconds").groupBy(F.window("at", "3 seconds"))
    return grouped.agg(F.count("*").alias("n")).select(F.col("window.start").alias("start"), "n")


@app.operator(payments, clicks, input="correlated")
def joined(rows: DataFrame, others: DataFrame) -> DataFrame:
    left = rows.withWatermark("at", "2 seconds").alias("l")
    right = others.withWatermark("at", "2 seconds").alias("r")
    near = F.expr("l.user = r.user AND r.at BETWEEN l.at - INTERVAL 1 SECOND AND l.at")
    return left.join(right, near).select("l.user", "l.at", "l.amount", F.col("r.amount").alias("clicks"))


@app.operator(payments, output_mode="update")
def running(rows: DataFrame) -> DataFrame:
    output = StructType([StructField("user", IntegerType()), StructField("sum", LongType())])
    return rows.groupBy("user").transformWithState(Running(), output, "update", "none")


@app.operator(payments, slices=SLICES)
def large(rows: DataFrame) -> DataFrame:
    return rows.where("amount > 50").select("user", "at", (F.col("amount") * 2).alias("double"))


for stream in (large, totals, windows, joined, running):
    app.sink(f"{stream.name}-out", stream, us.sinks.Parquet(stream.name))
