"""What `examples/pages` must deliver: requests of every window counted, and the first of the sorted pages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import chain

from tests.oracles.lines import Lines, iso
from tests.oracles.rows import Epochs, Row
from tests.oracles.windows import late, starts, watermarks

LENGTH, STEP, NO_DELAY = timedelta(minutes=5), timedelta(minutes=1), timedelta(0)
Slices = Callable[[int], int]


def parts(epochs: Epochs, column: str, slice_of: Slices, slices: int) -> list[Epochs]:
    return [[[row for row in rows if slice_of(row[column]) == n] for rows in epochs] for n in range(slices)]


def together(streams: Sequence[Epochs]) -> Epochs:
    return [list(chain(*rows)) for rows in zip(*streams, strict=True)]


def counts(epochs: Epochs) -> Epochs:
    """One slice: each window in the epoch in which the newest request before has passed its end."""
    marks = watermarks((epochs, NO_DELAY))
    windows: dict[datetime, Counter[tuple[int, int]]] = defaultdict(Counter)
    found: Epochs = []
    for epoch, rows in enumerate(epochs):
        for row in rows:
            for start in starts(row["at"], LENGTH, STEP):
                if start + LENGTH > late(marks, epoch):
                    windows[start + LENGTH][row["server"], row["page"]] += 1
        over = [end for end in windows if end <= marks[epoch]]
        found.append([{"page": p, "at": end, "n": n} for end in over for (_, p), n in windows.pop(end).items()])
    return found


def totals(epochs: Epochs) -> Epochs:
    """One slice: the pages of a window when a later window has been seen before."""
    marks = watermarks((epochs, NO_DELAY))
    windows: dict[datetime, Counter[int]] = defaultdict(Counter)
    found: Epochs = []
    for epoch, rows in enumerate(epochs):
        for row in rows:
            if row["at"] > late(marks, epoch):
                windows[row["at"]][row["page"]] += row["n"]
        over = [end for end in windows if end <= marks[epoch]]
        found.append([{"page": page, "at": end, "n": n} for end in over for page, n in windows.pop(end).items()])
    return found


def hottest(epochs: Epochs, top: int) -> Lines:
    marks = watermarks((epochs, NO_DELAY))
    windows: dict[datetime, list[Row]] = defaultdict(list)
    found: Lines = []
    for epoch, rows in enumerate(epochs):
        for row in rows:
            if row["at"] > late(marks, epoch):
                windows[row["at"]].append(row)
        lines: list[Row] = []
        for end in [end for end in windows if end <= marks[epoch]]:
            ranked = sorted(windows.pop(end), key=lambda row: (-row["n"], row["page"]))
            lines += [{"end": iso(end), "page": row["page"]} for row in ranked[:top]]
        found.append(lines)
    return found


def expected(epochs: Epochs, server: Slices, page: Slices, slices: int, top: int = 100) -> dict[str, Lines]:
    """`server` and `page` say which slice has which: each closes its windows by its own newest row."""
    counted = together([counts(part) for part in parts(epochs, "server", server, slices)])
    added = together([totals(part) for part in parts(counted, "page", page, slices)])
    return {"top": hottest(added, top)}
