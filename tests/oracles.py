"""What `tests/apps/kinds.py` must deliver, worked out row by row in plain Python: slow, short and independent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import understudy as us
from understudy.model.topology import Topology

Row = dict[str, Any]
EARLY = datetime.fromtimestamp(0, UTC)
DELAY = timedelta(seconds=2)
WINDOW = timedelta(seconds=3)


def source_rows(topology: Topology, name: str, epochs: int) -> list[list[Row]]:
    """The rows of every epoch of a generated source, slices one after the other."""
    source = next(source for source in topology.sources if source.name == name)
    assert isinstance(source.source, us.sources.Generator)
    readers = [source.source.open(index, source.slices, topology.epoch_s) for index in range(source.slices)]
    return [
        [row for reader in readers for row in reader.read(epoch, None, None).to_pylist()] for epoch in range(epochs)
    ]


def watermarks(*sources: list[list[Row]]) -> list[datetime]:
    """The watermark in force in each epoch: the smallest of the newest times so far, less the delay.

    Spark closes windows by it in the same epoch, but calls a row late only if it was behind the epoch before's.
    """
    newest = [EARLY] * len(sources)
    marks = []
    for epochs in zip(*sources, strict=True):
        # Spark's watermarks start at zero and are whole milliseconds.
        mark = max(EARLY, min(newest) - DELAY)
        marks.append(mark.replace(microsecond=mark.microsecond // 1000 * 1000))
        newest = [max(top, *(row["at"] for row in rows)) for top, rows in zip(newest, epochs, strict=True)]
    return marks


def totals(payments: list[list[Row]]) -> Iterator[tuple[int, int, int, int]]:
    """(epoch, user, n, sum) for every user an epoch touches."""
    count: Counter[int] = Counter()
    total: Counter[int] = Counter()
    for epoch, rows in enumerate(payments):
        for row in rows:
            count[row["user"]] += 1
            total[row["user"]] += row["amount"]
        for user in {row["user"] for row in rows}:
            yield epoch, user, count[user], total[user]


def large(payments: list[list[Row]]) -> Iterator[tuple[int, int, datetime, int]]:
    """(epoch, user, at, double) for every payment above 50."""
    for epoch, rows in enumerate(payments):
        for row in rows:
            if row["amount"] > 50:
                yield epoch, row["user"], row["at"], row["amount"] * 2


def windows(payments: list[list[Row]]) -> Iterator[tuple[int, datetime, int]]:
    """(epoch, start, n) for every window the watermark closes, without rows that came after that."""
    open_windows: Counter[datetime] = Counter()
    marks = watermarks(payments)
    for epoch, (mark, rows) in enumerate(zip(marks, payments, strict=True)):
        for row in rows:
            start = EARLY + (row["at"] - EARLY) // WINDOW * WINDOW
            if start + WINDOW > marks[max(0, epoch - 1)]:
                open_windows[start] += 1
        for start in [start for start in open_windows if start + WINDOW <= mark]:
            yield epoch, start, open_windows.pop(start)


def joined(payments: list[list[Row]], clicks: list[list[Row]]) -> Iterator[tuple[int, datetime, int, int]]:
    """(user, at, amount, clicks) for every payment and click of a user at most a second before it, neither late."""
    marks = watermarks(payments, clicks)
    left, right = (
        [row for mark, rows in zip([marks[0], *marks], source, strict=False) for row in rows if row["at"] > mark]
        for source in (payments, clicks)
    )
    by_user = defaultdict(list)
    for row in right:
        by_user[row["user"]].append(row)
    for row in left:
        for other in by_user[row["user"]]:
            if row["at"] - timedelta(seconds=1) <= other["at"] <= row["at"]:
                yield row["user"], row["at"], row["amount"], other["amount"]
