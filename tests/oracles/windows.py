"""Operators that forget by event time: windows, sessions, deduplication, state with timeouts.

Spark has two watermarks in every batch: it closes by the newest, and calls a row late if it is behind the one before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.oracles.rows import Epochs, Output, Row, counted

EARLY = datetime.fromtimestamp(0, UTC)
MILLISECOND = timedelta(milliseconds=1)
Delayed = tuple[Epochs, timedelta]
"""A stream and how long its watermark waits."""


def watermarks(*streams: Delayed) -> list[datetime]:
    """The watermark in force in each epoch: the smallest over all streams of the newest time before, less the delay.

    A stream that has had no row yet holds the watermark at zero.
    """
    marks: list[datetime] = []
    reached = [EARLY] * len(streams)
    for epoch in range(len(streams[0][0])):
        marks.append(min(reached))
        for number, (epochs, delay) in enumerate(streams):
            for row in epochs[epoch]:
                # Watermarks are whole milliseconds and never negative.
                reached[number] = max(reached[number], _floor(row["at"]) - delay)
    return marks


def _floor(at: datetime) -> datetime:
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def late(marks: list[datetime], epoch: int) -> datetime:
    """Rows that are no newer are dropped."""
    return marks[max(0, epoch - 1)]


def starts(at: datetime, length: timedelta, slide: timedelta) -> Iterable[datetime]:
    """Of every window that holds this moment."""
    start = EARLY + (at - EARLY) // slide * slide
    while start + length > at:
        yield start
        start -= slide


def closed_windows(epochs: Epochs, length: timedelta, delay: timedelta) -> Output:
    """(start, rows) of every tumbling window, in the epoch in which it is closed (append mode)."""
    kept: Counter[datetime] = Counter()
    marks, found = watermarks((epochs, delay)), []
    for epoch, rows in enumerate(epochs):
        for row in rows:
            for start in starts(row["at"], length, length):
                if start + length > late(marks, epoch):
                    kept[start] += 1
        over = [start for start in kept if start + length <= marks[epoch]]
        found.append([(start, kept.pop(start)) for start in over])
    return counted(found)


def updated_windows(streams: list[Delayed], length: timedelta, slide: timedelta, value: str) -> Output:
    """(start, rows, sum) of every sliding window that an epoch touches (update mode), over the union of the streams."""
    kept: dict[datetime, tuple[int, int]] = defaultdict(lambda: (0, 0))
    marks, found = watermarks(*streams), []
    for epoch in range(len(marks)):
        touched = set()
        for row in (row for epochs, _ in streams for row in epochs[epoch]):
            for start in starts(row["at"], length, slide):
                if start + length > late(marks, epoch):
                    count, total = kept[start]
                    kept[start] = count + 1, total + row[value]
                    touched.add(start)
        found.append([(start, *kept[start]) for start in touched])
        for start in [start for start in kept if start + length <= marks[epoch]]:
            del kept[start]
    return counted(found)


def sessions(epochs: Epochs, key: str, gap: timedelta, delay: timedelta) -> Output:
    """(key, start, end, rows) of every session, in the epoch in which it is over (append mode)."""
    kept: dict[Any, list[tuple[datetime, datetime, int]]] = defaultdict(list)
    marks, found = watermarks((epochs, delay)), []
    for epoch, rows in enumerate(epochs):
        for row in rows:
            if row["at"] + gap > late(marks, epoch):
                kept[row[key]].append((row["at"], row["at"] + gap, 1))
        over = []
        for name, parts in kept.items():
            whole = _merged(sorted(parts))
            over += [(name, *session) for session in whole if session[1] <= marks[epoch]]
            kept[name] = [session for session in whole if session[1] > marks[epoch]]
        found.append(over)
    return counted(found)


def _merged(parts: list[tuple[datetime, datetime, int]]) -> list[tuple[datetime, datetime, int]]:
    whole: list[tuple[datetime, datetime, int]] = []
    for start, end, count in parts:
        if whole and start <= whole[-1][1]:
            first, last, so_far = whole.pop()
            whole.append((first, max(last, end), so_far + count))
        else:
            whole.append((start, end, count))
    return whole


def first_of_each(epochs: Epochs, key: str, delay: timedelta) -> Epochs:
    """The rows that `dropDuplicatesWithinWatermark` lets through: a key is remembered for the delay."""
    remembered: dict[Any, datetime] = {}
    marks, found = watermarks((epochs, delay)), []
    for epoch, rows in enumerate(epochs):
        through: list[Row] = []
        for row in rows:
            if row["at"] > late(marks, epoch) and row[key] not in remembered:
                remembered[row[key]] = row["at"] + delay
                through.append(row)
        found.append(through)
        remembered = {name: until for name, until in remembered.items() if until > marks[epoch]}
    return found


def with_timeout(epochs: Epochs, key: str, value: str, patience: timedelta, delay: timedelta) -> Output:
    """(key, rows, sum, over) of every key an epoch touches, and once more when nothing came for `patience`."""
    kept: dict[Any, tuple[int, int, datetime]] = {}
    marks, found = watermarks((epochs, delay)), []
    for epoch, rows in enumerate(epochs):
        touched = set()
        for row in rows:
            if row["at"] > late(marks, epoch):
                count, total, newest = kept.get(row[key], (0, 0, EARLY))
                kept[row[key]] = count + 1, total + row[value], max(newest, row["at"])
                touched.add(row[key])
        over = [name for name in kept if name not in touched and _floor(kept[name][2]) + patience < marks[epoch]]
        told = [(name, *kept[name][:2], name in over) for name in [*touched, *over]]
        kept = {name: state for name, state in kept.items() if name not in over}
        found.append(told)
    return counted(found)
