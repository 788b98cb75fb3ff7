"""DEBS 2015 Grand Challenge: the ten most frequent taxi routes and the ten most profitable areas, at every change.

    understudy run examples/taxi/app.py --nodes 3 --epochs 60
    understudy run examples/taxi/app.py --set data=debs2015-rides-sample.csv.gz

An epoch of a second stands for a minute of rides (--set speed=60). Rides are made up at --set rate=300 a second, or
read from a file in the challenge's format with --set data=FILE. README.md beside this file explains the queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import taxi_rides
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from taxi_areas import Areas, AreasState, Trip
from taxi_grid import LARGE, LAT_STEP, LON_STEP, NORTH, SMALL, WEST, cell_name, route_name
from taxi_routes import Ranking, RankingState

import understudy as us

EPOCH_S = 1.0
app = us.Topology("taxi", epoch=EPOCH_S)

DATA = us.setting("data", "")
SPEED = us.setting("speed", 60.0)
RATE, SEED = us.setting("rate", 300.0), us.setting("seed", 0)

# Counting loses a slice of the city at a time and is back from its checkpoint soon enough. The rankings hold the whole
# window and everybody looks at them, so their state waits in memory on a second node.
COUNTING = us.Recovery(scheme="passive_standby_cold")
RANKING = us.Recovery(scheme="passive_standby_hot")


def make(epoch: int, _slice: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return taxi_rides.rides(epoch, rows, SPEED * EPOCH_S, rng)


rides = app.source(
    "rides",
    us.sources.Files(DATA, "csv", taxi_rides.SCHEMA, event_time="dropoff_datetime", speed=SPEED)
    if DATA
    else us.sources.Generator(make, taxi_rides.SCHEMA, rate=RATE, seed=SEED),
)


@app.operator(rides)
def trips(rides: DataFrame) -> DataFrame:
    """Rides between cells, with what they earned; rides that start or end outside the grid are dropped."""
    points = rides.select("*", *_cell("pickup"), *_cell("dropoff"))
    for column in ("pickup_x", "pickup_y", "dropoff_x", "dropoff_y"):
        points = points.where(F.col(column).between(1, SMALL))
    return points.select(
        F.xxhash64("medallion").alias("taxi"),
        F.unix_micros("pickup_datetime").alias("pickup"),
        F.col("dropoff_datetime").alias("dropoff"),
        (_code("pickup", LARGE) * (LARGE + 1) ** 2 + _code("dropoff", LARGE)).alias("route"),
        _code("pickup", SMALL).alias("start"),
        _code("dropoff", SMALL).alias("end"),
        (_cents("fare_amount") + _cents("tip_amount")).alias("cents"),
    )


def _cell(place: str) -> tuple[Column, Column]:
    """The small cell of a point; the zero coordinates of dirty rides lie outside the grid."""
    x = F.floor((F.col(f"{place}_longitude") - WEST) / LON_STEP) + 1
    y = F.floor((NORTH - F.col(f"{place}_latitude")) / LAT_STEP) + 1
    return x.alias(f"{place}_x"), y.alias(f"{place}_y")


def _code(place: str, cells: int) -> Column:
    """`taxi_grid.cell_code` in Spark's words, for either grid."""
    x, y = (F.floor((F.col(f"{place}_{axis}") - 1) / (SMALL // cells)) + 1 for axis in "xy")
    return x * (cells + 1) + y


def _cents(amount: str) -> Column:
    return F.round(F.col(amount) * 100).cast("long")


@app.operator(trips, key="route", slices=2, output_mode="update", recovery=COUNTING)
def counts(trips: DataFrame) -> DataFrame:
    """Rides of every route and second. The counts of one route are all in one slice, so slices need no agreement."""
    seconds = trips.withWatermark("dropoff", "1 minute").groupBy("dropoff", "route")
    counted = seconds.agg(F.count("*").alias("rides"), F.max("pickup").alias("pickup"))
    return counted.select("pickup", F.unix_micros("dropoff").alias("dropoff"), "route", "rides")


class _BySecond(StatefulProcessor):
    """One window over the whole city, in one slice: what the top ten shows depends on all of it.

    Spark promises no order of the rows in a batch, and drop-off times are whole seconds. So the window moves from
    second to second, and takes all that ended in a second at once.
    """

    SCHEMA: str

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("window", self.SCHEMA)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        window = self.restored(self._state.get() or ())
        for dropoff, ended in groupby(sorted(rows, key=lambda row: row.dropoff), key=lambda row: row.dropoff):
            together = list(ended)
            changed = self.shown(window, dropoff, together)
            if changed is not None:
                yield Row(pickup=max(row.pickup for row in together), dropoff=dropoff, **changed)
        self._state.update(tuple(vars(window.state()).values()))

    def close(self) -> None:
        pass

    def restored(self, state: tuple[Any, ...]) -> Any:
        raise NotImplementedError

    def shown(self, window: Any, dropoff: int, rows: list[Any]) -> dict[str, Any] | None:
        """Moves the window to this second; returns the columns of the new top ten if it changed."""
        raise NotImplementedError


class TopRoutes(_BySecond):
    SCHEMA = "now long, shown binary, counts binary"

    def restored(self, state: tuple[Any, ...]) -> Ranking:
        return Ranking(RankingState(*state))

    def shown(self, window: Ranking, dropoff: int, rows: list[Any]) -> dict[str, Any] | None:
        found = window.second(dropoff, [(row.route, row.rides) for row in rows])
        if found is None:
            return None
        return {"routes": [route_name(code) for code, _ in found], "rides": [rides for _, rides in found]}


class TopAreas(_BySecond):
    SCHEMA = "now long, shown binary, trips binary, taxis binary"

    def restored(self, state: tuple[Any, ...]) -> Areas:
        return Areas(AreasState(*state))

    def shown(self, window: Areas, dropoff: int, rows: list[Any]) -> dict[str, Any] | None:
        found = window.second(dropoff, [Trip(row.pickup, row.end, row.start, row.cents, row.taxi) for row in rows])
        if found is None:
            return None
        return {
            "areas": [cell_name(area.cell, SMALL) for area in found],
            "empty": [area.empty for area in found],
            "profit": [area.twice_profit / 2 for area in found],
            "profitability": [area.twice_profit / 2 / area.empty for area in found],
        }


def ranked(rows: DataFrame, processor: StatefulProcessor, columns: str) -> DataFrame:
    """The changes that a processor finds in the whole city, with their times."""
    city = rows.withColumn("city", F.lit(1)).groupBy("city")
    changes = city.transformWithState(processor, f"pickup long, dropoff long, {columns}", "append", "none")
    times = {name: F.timestamp_micros(name) for name in ("pickup", "dropoff")}
    return changes.withColumns(times)


@app.operator(counts, recovery=RANKING)
def routes(counts: DataFrame) -> DataFrame:
    """Query 1: the ten most frequent routes of the last 30 minutes."""
    return ranked(counts, TopRoutes(), "routes array<string>, rides array<int>")


@app.operator(trips, recovery=RANKING)
def areas(trips: DataFrame) -> DataFrame:
    """Query 2: the ten most profitable areas; money in cents."""
    ended = trips.withColumn("dropoff", F.unix_micros("dropoff"))
    columns = "areas array<string>, empty array<int>, profit array<double>, profitability array<double>"
    return ranked(ended, TopAreas(), columns)


app.sink("routes-out", routes, us.sinks.JsonLines("routes"))
app.sink("areas-out", areas, us.sinks.JsonLines("areas"))
