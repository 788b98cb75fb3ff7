"""What `examples/incidents` must deliver: incidents and speeds as lists, every pair looked at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from tests.oracles import joins
from tests.oracles.lines import Lines, iso
from tests.oracles.rows import Epochs, Row
from tests.oracles.windows import late, starts, watermarks

WINDOW, NO_DELAY = timedelta(seconds=10), timedelta(0)
SOON = (NO_DELAY, timedelta(minutes=1))
PATIENCE = timedelta(seconds=90)


def by_window(epochs: Epochs, summary: Callable[[list[Row]], Row]) -> Epochs:
    """One slice: the rows of a segment and a window, summed up when the newest row before has passed its end."""
    marks = watermarks((epochs, NO_DELAY))
    kept: dict[tuple[datetime, int], list[Row]] = defaultdict(list)
    found: Epochs = []
    for epoch, rows in enumerate(epochs):
        for row in rows:
            for start in starts(row["at"], WINDOW, WINDOW):
                if start + WINDOW > late(marks, epoch):
                    kept[start + WINDOW, row["segment"]].append(row)
        over = [group for group in kept if group[0] <= marks[epoch]]
        found.append([{"segment": group[1], "at": group[0]} | summary(kept.pop(group)) for group in over])
    return found


def mean(rows: list[Row]) -> Row:
    return {"kmh": sum(row["kmh"] for row in rows) // len(rows)}


def number(rows: list[Row]) -> Row:
    return {"reports": len(rows)}


def jams(incidents: Epochs, speeds: Epochs, slow_kmh: int) -> Epochs:
    """One slice: every incident with every slow time of its segment in the minute after it."""
    slow = [[row for row in rows if row["kmh"] <= slow_kmh] for rows in speeds]

    def pair(incident: Row, speed: Row | None) -> tuple[Any, ...]:
        assert speed is not None
        return incident["segment"], incident["at"], incident["reports"], speed["kmh"]

    found = joins.inner((incidents, NO_DELAY), (slow, NO_DELAY), "segment", SOON, pair)
    return [
        [dict(zip(("segment", "at", "reports", "kmh"), row, strict=True)) for row in rows.elements()] for rows in found
    ]


def board(epochs: Epochs) -> Lines:
    """The slow times of an incident, summed up when incidents that were 90 s later have been seen."""
    marks = watermarks((epochs, PATIENCE))
    cases: dict[tuple[datetime, int, int], list[int]] = defaultdict(list)
    found: Lines = []
    for epoch, rows in enumerate(epochs):
        for row in rows:
            if row["at"] > late(marks, epoch):
                cases[row["at"], row["segment"], row["reports"]].append(row["kmh"])
        over = [case for case in cases if case[0] <= marks[epoch]]
        found.append([line(*case, cases.pop(case)) for case in over])
    return found


def line(since: datetime, segment: int, reports: int, slow: list[int]) -> Row:
    known = {"since": iso(since), "segment": segment, "reports": reports}
    return known | {"slowest": min(slow), "slow_times": len(slow)}


def expected(
    positions: Epochs, reports: Epochs, slice_of: Callable[[int], int], slices: int, slow_kmh: int = 25
) -> dict[str, Lines]:
    """`slice_of` says which slice has a segment: each goes by its own newest rows."""

    def part(epochs: Epochs, index: int) -> Epochs:
        return [[row for row in rows if slice_of(row["segment"]) == index] for rows in epochs]

    incidents = by_window(reports, number)
    found = [jams(part(incidents, index), by_window(part(positions, index), mean), slow_kmh) for index in range(slices)]
    return {"jams": board([list(chain(*rows)) for rows in zip(*found, strict=True)])}
