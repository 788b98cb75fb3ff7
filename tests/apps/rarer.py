"""The other kinds of state, over sources that are not generated: files, one of them sparse and ahead, and a live one.

`folder` holds orders.csv and offers.jsonl; the live source has had a row every 50 ms since `born`.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

import understudy as us

FOLDER = Path(us.setting("folder", "."))
BORN = us.setting("born", 0.0)
VISITS = "n long, user int, at timestamp, amount long"
EVERY_S = 0.05


def visit(n: int) -> tuple[int, int, dt.datetime, int]:
    """The n-th visit, whenever it is read; a second out of order, and now and then much too late."""
    late = 160 if n % 23 == 22 else n * 7 % 20
    at = dt.datetime.fromtimestamp(1_000, dt.UTC) + (n - late) * dt.timedelta(seconds=EVERY_S)
    return n, n * n % 7, at, n % 100


class Range(InputPartition):
    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end


class Visiting(DataSourceStreamReader):
    """Offers what has come until the moment it is asked, in two partitions."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"n": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"n": max(start["n"], int((time.time() - BORN) / EVERY_S))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        middle = (start["n"] + end["n"]) // 2
        return [Range(start["n"], middle), Range(middle, end["n"])]

    def read(self, partition: Any) -> Iterator[Any]:
        return (visit(n) for n in range(partition.start, partition.end))


class Visits(DataSource):
    @classmethod
    def name(cls) -> str:
        return "visits"

    def schema(self) -> str:
        return VISITS

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return Visiting()


def protected(scheme: str) -> us.Recovery:
    return us.Recovery(scheme=scheme)


app = us.Topology("rarer", epoch="2 seconds")
orders = app.source(
    "orders",
    us.sources.Files(
        FOLDER / "orders.csv", "csv", "id long, user int, at timestamp, amount long", rate=30, options={"header": True}
    ),
)
offers = app.source(
    "offers", us.sources.Files(FOLDER / "offers.jsonl", "json", "user int, at timestamp, percent long", rate=0.05)
)
visits = app.source("visits", us.sources.Reader(Visits), slices=2)


@app.operator(visits, recovery=protected("active_standby"))
def seen(rows: DataFrame) -> DataFrame:
    """What came in which epoch: only the moment of the cut decides that."""
    return rows.select("n", "user", "at", "amount")


@app.operator(orders, recovery=protected("passive_standby_hot"))
def unique(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", "3 seconds").dropDuplicatesWithinWatermark(["id"])


@app.operator(unique, output_mode="update", recovery=protected("passive_replication"))
def patient(rows: DataFrame) -> DataFrame:
    """A state per user that is told, and forgotten, when nothing has come for five seconds."""

    def fold(key: tuple[Any, ...], parts: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        count, total, newest = state.get if state.exists else (0, 0, 0)
        if state.hasTimedOut:
            state.remove()
        else:
            for part in parts:
                count, total = count + len(part), total + int(part["amount"].sum())
                newest = max(newest, round(part["at"].max().timestamp() * 1000))
            state.update((count, total, newest))
            state.setTimeoutTimestamp(newest + 5000)
        out = {"user": [key[0]], "n": [count], "sum": [total], "over": [state.hasTimedOut]}
        yield pd.DataFrame(out)

    grouped = rows.withWatermark("at", "3 seconds").groupBy("user")
    return grouped.applyInPandasWithState(
        fold,
        "user int, n long, sum long, over boolean",
        "n long, sum long, newest long",
        "update",
        GroupStateTimeout.EventTimeTimeout,
    )


@app.operator(visits, recovery=protected("active_replication"))
def sessions(rows: DataFrame) -> DataFrame:
    grouped = rows.withWatermark("at", "2 seconds").groupBy("user", F.session_window("at", "300 milliseconds"))
    counted = grouped.agg(F.count("*").alias("n"))
    return counted.select("user", F.col("session_window.start"), F.col("session_window.end"), "n")


@app.operator(orders, offers, input="correlated", recovery=protected("passive_standby_cold"))
def matched(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Two watermarks, one of them of a stream that is empty most of the time and runs half a minute ahead."""
    left = rows.withWatermark("at", "3 seconds").alias("l")
    right = others.withWatermark("at", "3 seconds").alias("r")
    near = F.expr("l.user = r.user AND r.at BETWEEN l.at - INTERVAL 9 SECONDS AND l.at + INTERVAL 9 SECONDS")
    return left.join(right, near, "leftOuter").select("l.id", "l.at", F.col("r.percent"))


@app.operator(orders, visits, input="correlated", output_mode="update", recovery=protected("deployed"))
def sliding(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Two watermarks, of clocks that have nothing to do with each other."""
    both = rows.withWatermark("at", "3 seconds").select("at", "amount")
    both = both.union(others.withWatermark("at", "1 second").select("at", "amount"))
    grouped = both.groupBy(F.window("at", "4 seconds", "2 seconds"))
    counted = grouped.agg(F.count("*").alias("n"), F.sum("amount").alias("sum"))
    return counted.select(F.col("window.start").alias("start"), "n", "sum")


for stream in (seen, unique, patient, sessions, matched, sliding):
    app.sink(f"{stream.name}-out", stream, us.sinks.Parquet(stream.name))
