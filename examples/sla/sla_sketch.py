"""Percentiles of a stream from a few hundred counters. Plain Python, no Spark.

The sketch is DDSketch (Masson, Rim and Lee, 2019): values are counted in buckets whose bounds grow by a constant
factor. A percentile is read off the counts, and is wrong by a 99th at most. Sketches are merged by adding their
counts, so a sliding window is the sum of the sketches of its panes. Bounds are whole numbers here, so all machines
agree on them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple


def _bounds(largest: int) -> list[int]:
    """Upper bounds of the buckets: each at most 101/99 of the one before, so its middle is within a 99th."""
    found = [1]
    while found[-1] < largest:
        found.append(max(found[-1] + 1, found[-1] * 101 // 99))
    return found


BOUNDS = _bounds(3_600_000_000)  # an hour in microseconds


def bucket(value: int) -> int:
    """The bucket of a value; what is larger than an hour counts as an hour.

    >>> bucket(1), bucket(2), bucket(250_000) - bucket(200_000)
    (0, 1, 11)
    """
    return min(bisect_left(BOUNDS, value), len(BOUNDS) - 1)


def middle(number: int) -> int:
    """The value that stands for a bucket.

    >>> abs(middle(bucket(250_000)) - 250_000) <= 2_500
    True
    """
    lowest = BOUNDS[number - 1] + 1 if number else 0
    return (lowest + BOUNDS[number]) // 2


def percentile(counts: Mapping[int, int], percent: int) -> int:
    """The value that so many per cent of all counted values do not exceed.

    >>> percentile(Counter([bucket(value) for value in (10, 20, 30, 40)]), 50)
    20
    """
    rank = -(-sum(counts.values()) * percent // 100)  # rounded up
    passed = 0
    for number in sorted(counts):
        passed += counts[number]
        if passed >= rank:
            return middle(number)
    raise ValueError("a sketch without values has no percentiles")


class Summary(NamedTuple):
    """A service in the window that ends with a pane."""

    pane: int
    requests: int
    p50: int
    p95: int
    p99: int


class Window:
    """The sketches of a service's last panes; kept as three lists between two epochs: pane, bucket and count."""

    def __init__(self, panes: int, newest: int = -1, *kept: Iterable[int]) -> None:
        self._panes = panes
        self._newest = newest
        self._counts: dict[int, Counter[int]] = {}
        for pane, place, count in zip(*kept, strict=True):
            self._counts.setdefault(pane, Counter())[place] = count

    def state(self) -> tuple[int, list[int], list[int], list[int]]:
        flat = [(pane, place, n) for pane, counts in self._counts.items() for place, n in counts.items()]
        return self._newest, [pane for pane, _, _ in flat], [place for _, place, _ in flat], [n for _, _, n in flat]

    def add(self, pane: int, value: int) -> Summary | None:
        """Counts a value. The first one of a later pane ends the newest pane, whose summary is returned.

        A value of an earlier pane still counts in the windows to come, if they reach back that far.
        """
        over = self._summary() if -1 < self._newest < pane else None
        self._newest = max(self._newest, pane)
        self._counts = {number: counts for number, counts in self._counts.items() if number > self._oldest()}
        if pane > self._oldest():
            self._counts.setdefault(pane, Counter())[bucket(value)] += 1
        return over

    def _oldest(self) -> int:
        """The last pane that is no longer in the window."""
        return self._newest - self._panes

    def _summary(self) -> Summary:
        merged = sum(self._counts.values(), Counter())
        marks = (percentile(merged, percent) for percent in (50, 95, 99))
        return Summary(self._newest, merged.total(), *marks)
