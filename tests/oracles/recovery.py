"""What `examples/recovery` must deliver: sums of pairs of keys over sliding windows, three in a row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import chain

from tests.oracles.lines import Lines, iso
from tests.oracles.rows import Epochs, Row
from tests.oracles.windows import late, starts, watermarks

STEP, NO_DELAY = timedelta(seconds=1), timedelta(0)


def together(*streams: Epochs) -> Epochs:
    return [list(chain(*rows)) for rows in zip(*streams, strict=True)]


def smoothed(epochs: Epochs, window: timedelta) -> Epochs:
    """One operator: each window in the epoch in which the newest row before has passed its end."""
    marks = watermarks((epochs, NO_DELAY))
    sums: dict[tuple[datetime, int], int] = defaultdict(int)
    found: Epochs = []
    for epoch, rows in enumerate(epochs):
        for row in rows:
            for start in starts(row["at"], window, STEP):
                if start + window > late(marks, epoch):
                    sums[start, row["key"] // 2] += row["value"]
        over = [group for group in sums if group[0] + window <= marks[epoch]]
        found.append([line(start + window - STEP, key, sums.pop((start, key))) for start, key in over])
    return found


def line(at: datetime, key: int, value: int) -> Row:
    return {"key": key, "at": at, "value": value}


def expected(sources: Sequence[Epochs], window: timedelta) -> dict[str, Lines]:
    """Sources in pairs, pairs of pairs, and so on, until one stream is left."""
    level = [smoothed(source, window) for source in sources]
    while len(level) > 1:
        level = [smoothed(together(*level[i : i + 2]), window) for i in range(0, len(level), 2)]
    return {"smoothed": [[row | {"at": iso(row["at"])} for row in rows] for rows in level[0]]}
