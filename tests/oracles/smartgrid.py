"""What `examples/smartgrid` must deliver, from the readings of all epochs so far: nothing is remembered in between."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from math import floor
from typing import NamedTuple

from tests.oracles.lines import Lines, iso
from tests.oracles.rows import Epochs, Row

HOUR_S, DAY, WEEK = 3600, 24, 7 * 24
Plug = tuple[int, int]
"""House, and household times 100 plus plug."""


class Load(NamedTuple):
    hour: int
    milliwatts: int
    completed: bool


def middle(values: Iterable[int]) -> int:
    return floor(statistics.median(list(values)))


def at(hour: int) -> str:
    return iso(datetime.fromtimestamp(hour * HOUR_S, UTC))


def by_plug(readings: list[Row]) -> dict[Plug, list[Row]]:
    """The readings of every plug in order, work before load."""
    found: dict[Plug, list[Row]] = defaultdict(list)
    for row in sorted(readings, key=lambda row: (row["timestamp"], row["property"], row["value"])):
        found[row["house_id"], row["household_id"] * 100 + row["plug_id"]].append(row)
    return found


def loads_of(readings: list[Row]) -> list[Load]:
    """The load of every hour of one plug that is over, because a later hour has a reading."""
    found = []
    hours = sorted({row["timestamp"] // HOUR_S for row in readings})
    for hour, later in pairwise(hours):
        watts = [row["value"] for row in readings if row["timestamp"] // HOUR_S == hour and row["property"] == 1]
        if watts:
            found.append(Load(hour, sum(round(value * 1000) for value in watts) // len(watts), completed=False))
        mean = mean_by_work(readings, later)
        missing = range(hour + bool(watts), later)
        found += [Load(number, mean, completed=True) for number in missing if mean is not None]
    return found


def mean_by_work(readings: list[Row], hour: int) -> int | None:
    """The mean load between the first reading of an hour, if that is work, and the last work before it."""
    after = next(row for row in readings if row["timestamp"] // HOUR_S == hour)
    before = [row for row in readings if row["property"] == 0 and row["timestamp"] // HOUR_S < hour]
    if after["property"] != 0 or not before:
        return None
    used: int = round(after["value"] * 1e6) - round(before[-1]["value"] * 1e6)
    seconds: int = after["timestamp"] - before[-1]["timestamp"]
    return used * HOUR_S // seconds


def prediction(loads: dict[int, int], hour: int) -> int:
    """Of the load two hours after this one."""
    oldest = max(loads) - WEEK
    same_time = [hour + 2 - DAY * days for days in range(1, 8)]
    earlier = [loads[number] for number in same_time if number in loads and number >= oldest]
    return (loads[hour] + (middle(earlier) if earlier else loads[hour])) // 2


def percentages(loads: dict[Plug, list[Load]], window: int) -> dict[int, int]:
    """Per house, the share of its plugs whose median load is above the median of all loads of the window."""
    newest = max(load.hour for plug in loads.values() for load in plug)
    recent = {plug: [load.milliwatts for load in of if load.hour > newest - window] for plug, of in loads.items()}
    overall = middle(value for values in recent.values() for value in values)
    above: dict[int, list[bool]] = defaultdict(list)
    for (house, _), values in recent.items():
        if values:
            above[house].append(middle(values) > overall)
    return {house: 100 * sum(marks) // len(marks) for house, marks in above.items()}


def predictions(known: dict[Plug, list[Load]], new: dict[Plug, list[Load]]) -> list[Row]:
    """One for every new load of a plug, and one for every hour of a house to which one was added."""
    found: list[Row] = []
    houses: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    touched: dict[Plug, set[int]] = defaultdict(set)
    curves: dict[Plug, dict[int, int]] = {}
    for (house, plug), loads in known.items():
        curves[house, plug] = {load.hour: load.milliwatts for load in loads}
        for load in loads:
            houses[house][load.hour] += load.milliwatts
        for load in new[house, plug]:
            touched[house, plug].add(load.hour)
            touched[house, -1].add(load.hour)
    curves |= {(house, -1): loads for house, loads in houses.items()}
    for (house, plug), hours in touched.items():
        for hour in hours:
            if hour >= max(curves[house, plug]) - WEEK:
                milliwatts = prediction(curves[house, plug], hour)
                found.append({"house": house, "plug": plug, "slice": hour + 2, "load": milliwatts, "at": at(hour + 2)})
    return found


def expected(epochs: Epochs, window: int = 24) -> dict[str, Lines]:
    out: dict[str, Lines] = {"loads": [], "predictions": [], "outliers": []}
    before: dict[Plug, list[Load]] = defaultdict(list)
    shown: dict[int, int] = {}
    for epoch in range(len(epochs)):
        known = {
            plug: loads_of(rows) for plug, rows in by_plug([r for rows in epochs[: epoch + 1] for r in rows]).items()
        }
        new = {plug: loads[len(before[plug]) :] for plug, loads in known.items()}
        out["loads"].append(
            [
                {"house": house, "plug": plug, "slice": hour, "load": load, "completed": completed, "at": at(hour)}
                for (house, plug), loads in new.items()
                for hour, load, completed in loads
            ]
        )
        out["predictions"].append(predictions(known, new))
        changed: list[Row] = []
        if any(new.values()):
            newest = max(load.hour for loads in known.values() for load in loads)
            found = percentages(known, window)
            changed = [
                {"slice": newest, "house": house, "percent": percent, "at": at(newest)}
                for house, percent in found.items()
                if shown.get(house) != percent
            ]
            shown |= found
        out["outliers"].append(changed)
        before = defaultdict(list, known)
    return out
