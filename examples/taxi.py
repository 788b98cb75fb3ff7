"""DEBS 2015 Grand Challenge, query 1: the ten most frequent taxi routes of the last 30 minutes, at every change.

    understudy run examples/taxi.py --nodes 3 --epochs 60
    understudy run examples/taxi.py --set data=debs2015-rides-sample.csv.gz

An epoch of a second stands for a minute of rides (--set speed=60). Rides are made up at --set rate=300 a second, or
read from a file in the challenge's format with --set data=FILE.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import taxi_rides
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from taxi_routes import CELLS, LAT_STEP, LON_STEP, NORTH, WEST, Ranking, State, route_name

import understudy as us

EPOCH_S = 1.0
app = us.Topology("taxi", epoch=EPOCH_S)

DATA = us.setting("data", "")
SPEED = us.setting("speed", 60.0)
RATE, SEED = us.setting("rate", 300), us.setting("seed", 0)


def make(epoch: int, _slice: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return taxi_rides.rides(epoch, rows, SPEED * EPOCH_S, rng)


rides = app.source(
    "rides",
    us.sources.Files(DATA, "csv", taxi_rides.SCHEMA, event_time="dropoff_datetime", speed=SPEED)
    if DATA
    else us.sources.Generator(make, taxi_rides.SCHEMA, rate=RATE, seed=SEED),
)


@app.operator(rides)
def routes(rides: DataFrame) -> DataFrame:
    """Rides as routes between cells; rides that start or end outside the grid are dropped."""
    points = rides.select(
        F.unix_micros("pickup_datetime").alias("pickup"),
        F.unix_micros("dropoff_datetime").alias("dropoff"),
        *_cell("pickup"),
        *_cell("dropoff"),
    )
    code: Any = F.lit(0).cast("long")
    for column in ("pickup_x", "pickup_y", "dropoff_x", "dropoff_y"):
        points = points.where(F.col(column).between(1, CELLS))
        code = code * (CELLS + 1) + F.col(column)
    return points.select("pickup", "dropoff", code.alias("route"))


def _cell(place: str) -> tuple[Column, Column]:
    """`taxi_routes.cell` in Spark's words."""
    x = F.floor((F.col(f"{place}_longitude") - WEST) / LON_STEP) + 1
    y = F.floor((NORTH - F.col(f"{place}_latitude")) / LAT_STEP) + 1
    return x.alias(f"{place}_x"), y.alias(f"{place}_y")


class TopRoutes(StatefulProcessor):
    """One window over all rides, in one slice: whether a change shows in the top ten depends on all routes."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("window", "now long, shown binary, rides binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        before = self._state.get() if self._state.exists() else None
        ranking = Ranking(None if before is None else State(*before))
        # Spark promises no order of the rows in a batch; rides of one second are taken in order of pickup and route.
        for dropoff, pickup, route in sorted((row.dropoff, row.pickup, row.route) for row in rows):
            top = ranking.add(dropoff, route)
            if top is not None:
                routes, rides = [route_name(code) for code, _ in top], [count for _, count in top]
                yield Row(pickup=pickup, dropoff=dropoff, routes=routes, rides=rides)
        state = ranking.state()
        self._state.update((state.now, state.shown, state.rides))

    def close(self) -> None:
        pass


@app.operator(routes)
def top(routes: DataFrame) -> DataFrame:
    output = "pickup long, dropoff long, routes array<string>, rides array<int>"
    changes = (
        routes.withColumn("city", F.lit(1)).groupBy("city").transformWithState(TopRoutes(), output, "append", "none")
    )
    return changes.select(
        F.timestamp_micros("pickup").alias("pickup"), F.timestamp_micros("dropoff").alias("dropoff"), "routes", "rides"
    )


app.sink("changes", top, us.sinks.JsonLines("routes"))
