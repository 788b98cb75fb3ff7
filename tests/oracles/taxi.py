"""What `examples/taxi` must deliver, by the definition of the DEBS 2015 Grand Challenge: every window counted anew."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from tests.oracles.lines import Lines, iso
from tests.oracles.rows import Epochs, Row

LONGITUDE, LATITUDE = -74.913585, 41.474937
"""The centre of the north-western cell of 500 m."""
EAST, SOUTH = 0.005986, 0.004491556
"""500 m in degrees."""
HALF_HOUR, QUARTER = timedelta(minutes=30), timedelta(minutes=15)
Cell = tuple[int, int]
Top = tuple[list[Any], Row]
"""What is ranked, and the columns that show it."""


@dataclass(frozen=True)
class Ride:
    taxi: str
    pickup: datetime
    dropoff: datetime
    route: tuple[Cell, Cell]
    area: tuple[Cell, Cell]
    cents: int


def cell(longitude: float, latitude: float, metres: int) -> Cell | None:
    """Numbered from 1 in the north-west; None outside of 150 km × 150 km."""
    part = metres / 500
    x = math.floor((longitude - (LONGITUDE - EAST / 2)) / (EAST * part)) + 1
    y = math.floor(((LATITUDE + SOUTH / 2) - latitude) / (SOUTH * part)) + 1
    cells = 150_000 // metres
    return (x, y) if 1 <= x <= cells and 1 <= y <= cells else None


def ride(row: Row) -> Ride | None:
    """None for a ride that starts or ends outside of the grid."""
    points = [(row[f"{place}_longitude"], row[f"{place}_latitude"]) for place in ("pickup", "dropoff")]
    routes = [cell(*point, 500) for point in points]
    areas = [cell(*point, 250) for point in points]
    if None in routes or None in areas:
        return None
    cents = round(row["fare_amount"] * 100) + round(row["tip_amount"] * 100)
    times = row["pickup_datetime"], row["dropoff_datetime"]
    return Ride(row["medallion"], *times, tuple(routes), tuple(areas), cents)  # type: ignore[arg-type]


def top_routes(rides: Iterable[Ride], now: datetime) -> Top:
    """More rides first, then the later last drop-off, then the smaller cells."""
    inside = [one for one in rides if one.dropoff >= now - HALF_HOUR]
    count = Counter(one.route for one in inside)
    last = {one.route: one.dropoff for one in sorted(inside, key=lambda one: one.dropoff)}
    best = sorted(count, key=lambda route: (-count[route], now - last[route], route))[:10]
    names = [f"{a}.{b}-{c}.{d}" for (a, b), (c, d) in best]
    return best, {"routes": names, "rides": [count[route] for route in best]}


def top_areas(rides: Iterable[Ride], now: datetime) -> Top:
    """More cents for each empty taxi first, then the smaller cell."""
    fares: dict[Cell, list[int]] = defaultdict(list)
    newest: dict[str, Ride] = {}
    for one in sorted(rides, key=lambda one: (one.dropoff, one.pickup, one.area[1])):
        if one.dropoff >= now - QUARTER:
            fares[one.area[0]].append(one.cents)
        newest[one.taxi] = one
    empty = Counter(one.area[1] for one in newest.values() if one.dropoff >= now - HALF_HOUR)
    profit = {area: float(statistics.median(cents)) for area, cents in fares.items() if empty[area]}
    best = sorted(profit, key=lambda area: (-profit[area] / empty[area], area))[:10]
    columns = {
        "areas": [f"{x}.{y}" for x, y in best],
        "empty": [empty[area] for area in best],
        "profit": [profit[area] for area in best],
        "profitability": [profit[area] / empty[area] for area in best],
    }
    return best, columns


def changes(epochs: list[list[Ride]], top: Callable[[list[Ride], datetime], Top]) -> Lines:
    """A row for every second after whose drop-offs the ten best are others, or in another order, than before."""
    known: list[Ride] = []
    shown: list[Any] = []
    found: Lines = []
    for rides in epochs:
        rows = []
        by_time = groupby(sorted(rides, key=lambda one: one.dropoff), key=lambda one: one.dropoff)
        for now, ended in by_time:
            together = list(ended)
            known = [one for one in known if one.dropoff >= now - HALF_HOUR] + together
            best, columns = top(known, now)
            if best != shown:
                shown = best
                pickup = max(one.pickup for one in together)
                rows.append({"pickup": iso(pickup), "dropoff": iso(now), **columns})
        found.append(rows)
    return found


def expected(epochs: Epochs) -> dict[str, Lines]:
    rides = [[one for row in rows if (one := ride(row)) is not None] for rows in epochs]
    return {"routes": changes(rides, top_routes), "areas": changes(rides, top_areas)}
