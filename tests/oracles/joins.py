"""Joins of two streams on a key and an interval of time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from tests.oracles.rows import Output, Row, counted
from tests.oracles.windows import MILLISECOND, Delayed, late, watermarks

Interval = tuple[timedelta, timedelta]
"""How much earlier and how much later than the left row the right one may be."""
Take = Callable[[Row, Row | None], tuple[Any, ...]]
Arrived = tuple[int, Row]


def _in_time(stream: Delayed, marks: list[datetime]) -> list[Arrived]:
    """(epoch, row) of every row that is not late."""
    epochs, _ = stream
    return [(epoch, row) for epoch, rows in enumerate(epochs) for row in rows if row["at"] > late(marks, epoch)]


def _pairs(left: list[Arrived], right: list[Arrived], key: str, within: Interval) -> list[tuple[Arrived, Arrived]]:
    by_key: dict[Any, list[Arrived]] = defaultdict(list)
    for arrived in right:
        by_key[arrived[1][key]].append(arrived)
    earlier, later = within
    return [
        (one, other)
        for one in left
        for other in by_key[one[1][key]]
        if one[1]["at"] - earlier <= other[1]["at"] <= one[1]["at"] + later
    ]


def inner(left: Delayed, right: Delayed, key: str, within: Interval, take: Take) -> Output:
    """Every pair, in the epoch in which its second row arrives."""
    marks = watermarks(left, right)
    found: list[list[tuple[Any, ...]]] = [[] for _ in marks]
    for (one_epoch, one), (other_epoch, other) in _pairs(_in_time(left, marks), _in_time(right, marks), key, within):
        found[max(one_epoch, other_epoch)].append(take(one, other))
    return counted(found)


def left_outer(left: Delayed, right: Delayed, key: str, within: Interval, take: Take) -> Output:
    """As `inner`; and a left row without a partner in the epoch from which on none can come.

    Holds where the watermark makes smaller steps than the interval is wide: what becomes of a row that has no hope of
    a partner when it arrives is not modelled.
    """
    marks = watermarks(left, right)
    rows, others = _in_time(left, marks), _in_time(right, marks)
    assert all(row["at"] + within[1] >= marks[epoch] for epoch, row in rows)
    assert all(row["at"] + within[0] >= marks[epoch] for epoch, row in others)
    found = inner(left, right, key, within, take)
    paired = {id(one) for (_, one), _ in _pairs(rows, others, key, within)}
    for epoch, row in rows:
        if id(row) not in paired:
            hopeless = row["at"] + within[1] + MILLISECOND
            over = next((number for number in range(epoch, len(marks)) if marks[number] >= hopeless), None)
            if over is not None:
                found[over][take(row, None)] += 1
    return found
