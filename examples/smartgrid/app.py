"""DEBS 2014 Grand Challenge: predicts the load of plugs and houses, and finds houses that use more than others.

    understudy run examples/smartgrid/app.py --nodes 3 --epochs 60
    understudy run examples/smartgrid/app.py --set data=sorted.csv

An epoch of two seconds stands for two hours (--set speed=3600) of readings, which are made up: --set rate=160 a second,
--set houses=4; or read from a file in the challenge's format with --set data=FILE. Loads that were never measured are
completed from the work that plugs report later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from smartgrid_model import SLICE_S, WORK, Grid, History, Plug, Reading
from smartgrid_readings import SCHEMA, readings

import understudy as us

EPOCH_S = 2.0
app = us.Topology("smartgrid", epoch=EPOCH_S)

DATA = us.setting("data", "")
SPEED = us.setting("speed", 3600.0)
HOUSES = us.setting("houses", 4)
WINDOW = us.setting("window", 24)
RATE, SEED = us.setting("rate", 160.0), us.setting("seed", 0)


def make(epoch: int, _slice: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return readings(epoch, rows, SPEED * EPOCH_S, HOUSES, rng)


measured = app.source(
    "readings",
    us.sources.Files(DATA, "csv", SCHEMA, event_time="timestamp", speed=SPEED)
    if DATA
    else us.sources.Generator(make, SCHEMA, rate=RATE, seed=SEED),
)


class _ByKey(StatefulProcessor):
    """What the three operators have in common: a state for each key, restored before an epoch and stored after it."""

    STATE: str
    OUTPUT: str

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("state", self.STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        # Spark promises no order of the rows in a batch.
        found, state = self.step(key, sorted(rows), self._state.get() or ())
        self._state.update(state)
        return iter(found)

    def close(self) -> None:
        pass

    def step(self, key: Any, rows: list[Any], state: tuple[Any, ...]) -> tuple[list[Row], tuple[Any, ...]]:
        raise NotImplementedError


class Completing(_ByKey):
    """The loads of one plug."""

    STATE = "slice long, sum long, count long, work long, work_at long"
    OUTPUT = "house int, plug int, slice long, load long, completed boolean"

    def step(self, key: Any, rows: list[Any], state: tuple[Any, ...]) -> tuple[list[Row], tuple[Any, ...]]:
        plug = Plug(*state)
        loads = [load for row in rows for load in plug.read(Reading(row.at, row.property, row.value))]
        return [Row(house=key[0], plug=key[1], **load._asdict()) for load in loads], astuple(plug)


class Predicting(_ByKey):
    """The loads to come of one plug, or of one house."""

    STATE = "slices array<long>, loads array<long>"
    OUTPUT = "house int, plug int, slice long, load long"

    def step(self, key: Any, rows: list[Any], state: tuple[Any, ...]) -> tuple[list[Row], tuple[Any, ...]]:
        history = History(*state)
        for row in rows:
            history.add(row.slice, row.load)
        predicted = {slice_: history.predict(slice_) for slice_ in sorted({row.slice for row in rows})}
        found = [
            Row(house=key[0], plug=key[1], slice=slice_ + 2, load=load)
            for slice_, load in predicted.items()
            if load is not None
        ]
        return found, history.state()


class Comparing(_ByKey):
    """All plugs against all others."""

    STATE = "loads array<array<long>>, shown array<array<long>>"
    OUTPUT = "slice long, house int, percent int"

    def step(self, _key: Any, rows: list[Any], state: tuple[Any, ...]) -> tuple[list[Row], tuple[Any, ...]]:
        grid = Grid(WINDOW, *state)
        for row in rows:
            grid.add(row.house, row.plug, row.slice, row.load)
        newest, changed = grid.outliers()
        return [Row(slice=newest, house=house, percent=percent) for house, percent in changed.items()], grid.state()


def stateful(rows: DataFrame, keys: list[str], processor: _ByKey) -> DataFrame:
    """The rows of each key to a processor; the number of a slice becomes the time at which it begins."""
    found = rows.groupBy(*keys).transformWithState(processor, processor.OUTPUT, "append", "none")
    return found.withColumn("at", F.timestamp_seconds(F.col("slice") * SLICE_S))


# The work of a plug since its last reading is nowhere but in this state: it waits on the disk of a second node.
@app.operator(measured, key="house_id", slices=2, recovery=us.Recovery(scheme="passive_standby_cold"))
def loads(readings: DataFrame) -> DataFrame:
    """The mean load of every plug and hour, in milliwatts; what was not measured is completed from the work."""
    milli = F.when(F.col("property") == WORK, F.col("value") * 1e6).otherwise(F.col("value") * 1000)
    plugs = readings.select(
        F.col("timestamp").alias("at"),
        "property",
        F.round(milli).cast("long").alias("value"),
        F.col("house_id").alias("house"),
        (F.col("household_id") * 100 + F.col("plug_id")).alias("plug"),
    )
    return stateful(plugs, ["house", "plug"], Completing())


# A forecast that comes late is no forecast: the histories of all plugs wait in memory.
@app.operator(loads, recovery=us.Recovery(scheme="passive_standby_hot"))
def predictions(loads: DataFrame) -> DataFrame:
    """Query 1: what plugs and houses will use two hours later. A house is the plug -1, whose load is that of all."""
    both = loads.select("slice", "load", "house", F.explode(F.array("plug", F.lit(-1))).alias("plug"))
    return stateful(both, ["house", "plug"], Predicting())


@app.operator(loads)
def outliers(loads: DataFrame) -> DataFrame:
    """Query 2: how many per cent of a house's plugs use more than the median of all plugs in the last 24 hours."""
    grid = loads.select("house", "plug", "slice", "load", F.lit(1).alias("grid"))
    return stateful(grid, ["grid"], Comparing())


for stream in (loads, predictions, outliers):
    app.sink(f"{stream.name}-out", stream, us.sinks.JsonLines(stream.name))
