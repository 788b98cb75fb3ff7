"""Service-level monitoring: percentiles of every service over a sliding window, from a sketch, and its error budget.

    understudy run examples/sla/app.py --nodes 3 --epochs 60
    understudy run examples/sla/app.py --set data=ec2_request_latency.csv --set pane=3600 --set speed=3600

An epoch of a second stands for a minute (--set speed=60) of requests, which are made up at --set rate=600 a second; or
one service is read from a CSV file with a header and the columns timestamp and value (--set data=FILE). The window has
five panes of --set pane=60 seconds. A request is slow if it takes longer than --set slow=250 milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from sla_requests import REAL_SCHEMA, SCHEMA, requests
from sla_sketch import Window

import understudy as us

EPOCH_S = 1.0
# The machines that watch have other work to do: the controller shall count CPU twice.
app = us.Topology("sla", epoch=EPOCH_S, costs=us.Costs(cpu=2.0))

DATA = us.setting("data", "")
SPEED = us.setting("speed", 60.0)
PANE_S, PANES = us.setting("pane", 60), 5
SLOW_MS = us.setting("slow", 250)
RATE, SEED = us.setting("rate", 600.0), us.setting("seed", 0)


def make(epoch: int, _slice: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return requests(epoch, rows, SPEED * EPOCH_S, rng)


logged = app.source(
    "requests",
    us.sources.Files(DATA, "csv", REAL_SCHEMA, event_time="timestamp", speed=SPEED, options={"header": True})
    if DATA
    else us.sources.Generator(make, SCHEMA, rate=RATE, seed=SEED),
)


@app.operator(logged)
def latencies(requests: DataFrame) -> DataFrame:
    """Latencies in whole microseconds; a file without services is about one, called server."""
    service = F.lit("server") if DATA else F.col("service")
    micros = F.round(F.col("value") * 1000).cast("long")
    return requests.select(service.alias("service"), F.unix_micros("timestamp").alias("at"), micros.alias("micros"))


class Watching(StatefulProcessor):
    """The window of one service."""

    STATE = "newest long, pane array<long>, bucket array<long>, count array<long>"
    OUTPUT = "service string, pane long, requests long, p50 long, p95 long, p99 long"

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("window", self.STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        window = Window(PANES, *(self._state.get() or ()))
        # Spark promises no order of the rows in a batch.
        for at, micros in sorted((row.at, row.micros) for row in rows):
            over = window.add(at // (PANE_S * 1_000_000), micros)
            if over is not None:
                yield Row(service=key[0], **over._asdict())
        self._state.update(window.state())

    def close(self) -> None:
        pass


# Who watches others must be back soon, whatever that takes at the moment: the controller chooses.
@app.operator(latencies, key="service", slices=2, recovery=us.Recovery(objective=us.setting("objective", 2.0)))
def percentiles(latencies: DataFrame) -> DataFrame:
    """Median, 95th and 99th percentile of the last five panes, in microseconds, when a pane of a service is over."""
    found = latencies.groupBy("service").transformWithState(Watching(), Watching.OUTPUT, "append", "none")
    return found.withColumn("start", F.timestamp_seconds(F.col("pane") * PANE_S)).drop("pane")


# A handful of counters that people look at once a day.
@app.operator(latencies, key="service", output_mode="update", recovery=us.Recovery(scheme="deployed"))
def budgets(latencies: DataFrame) -> DataFrame:
    """How many requests of a service were slow since the beginning, of how many, and how many in a thousand."""
    slow = F.count_if(F.col("micros") > SLOW_MS * 1000)
    counted = latencies.groupBy("service").agg(F.count("*").alias("requests"), slow.alias("slow"))
    return counted.withColumn("per_mille", F.expr("slow * 1000 div requests"))


app.sink("percentiles-out", percentiles, us.sinks.JsonLines("percentiles"))
app.sink("budgets-out", budgets, us.sinks.JsonLines("budgets"))
