"""Query 2: the most profitable areas. Plain Python, no Spark.

The profit of an area is the median of fare plus tip over the trips that started there and ended in the last 15 minutes.
A taxi is empty in the area where it dropped somebody off in the last 30 minutes, until its next trip is known. An
area's profitability is its profit divided by its empty taxis; an area that lacks either is not ranked.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from taxi_board import Board

PROFIT_US = 15 * 60 * 1_000_000
EMPTY_US = 30 * 60 * 1_000_000


class Trip(NamedTuple):
    """A trip that has ended; `start` and `end` are codes of small cells, `cents` is fare plus tip."""

    pickup: int
    end: int
    start: int
    cents: int
    taxi: int


class Area(NamedTuple):
    """A ranked area; `twice_profit` is twice the median in cents, a whole number for any number of trips."""

    cell: int
    empty: int
    twice_profit: int


@dataclass(frozen=True)
class AreasState:
    """What the areas remember between two epochs; where it is long, as bytes of 64-bit numbers."""

    now: int = 0
    shown: bytes = b""
    trips: bytes = b""
    taxis: bytes = b""


class Areas:
    """The ten most profitable areas, kept in order second by second; of equals the smaller cell comes first."""

    def __init__(self, state: AreasState | None = None) -> None:
        state = state or AreasState()
        self._now = state.now
        self._shown: list[int] = np.frombuffer(state.shown, np.int64).tolist()
        self._trips: list[tuple[int, int, int]] = []  # a heap of (drop-off, start, cents)
        self._profits: defaultdict[int, list[int]] = defaultdict(list)  # sorted cents by cell
        self._drops: list[tuple[int, int]] = []  # a heap of (drop-off, taxi), also of taxis that have left since
        self._taxis: dict[int, tuple[int, int]] = {}  # where each empty taxi is, and since when
        self._empty: Counter[int] = Counter()
        self._board = Board()
        for at, start, cents in np.frombuffer(state.trips, np.int64).reshape(-1, 3).tolist():
            self._earn(at, start, cents)
        for at, taxi, cell in np.frombuffer(state.taxis, np.int64).reshape(-1, 3).tolist():
            self._park(at, taxi, cell)

    def state(self) -> AreasState:
        trips = np.array(sorted(self._trips), np.int64)
        taxis = np.array(sorted((at, taxi, cell) for taxi, (at, cell) in self._taxis.items()), np.int64)
        return AreasState(self._now, np.array(self._shown, np.int64).tobytes(), trips.tobytes(), taxis.tobytes())

    def second(self, at: int, trips: Iterable[Trip]) -> list[Area] | None:
        """Takes in all trips that ended at one time; returns the new top ten if its areas or their order changed.

        A taxi with several of them stands where the one with the latest pickup ended.
        """
        self._now = max(self._now, at)
        self._forget()
        for trip in sorted(trips):
            if at >= self._now - PROFIT_US:
                self._earn(at, trip.start, trip.cents)
            if at >= self._now - EMPTY_US:
                self._leave(trip.taxi)
                self._park(at, trip.taxi, trip.end)
        cells = self._board.first()
        if cells == self._shown:
            return None
        self._shown = cells
        return [Area(cell, self._empty[cell], self._twice_median(cell)) for cell in cells]

    def _forget(self) -> None:
        while self._trips and self._trips[0][0] < self._now - PROFIT_US:
            _, start, cents = heapq.heappop(self._trips)
            del self._profits[start][bisect_left(self._profits[start], cents)]
            self._rank(start)
        while self._drops and self._drops[0][0] < self._now - EMPTY_US:
            at, taxi = heapq.heappop(self._drops)
            if self._taxis.get(taxi, (None,))[0] == at:
                self._leave(taxi)

    def _earn(self, at: int, start: int, cents: int) -> None:
        heapq.heappush(self._trips, (at, start, cents))
        insort(self._profits[start], cents)
        self._rank(start)

    def _park(self, at: int, taxi: int, cell: int) -> None:
        heapq.heappush(self._drops, (at, taxi))
        self._taxis[taxi] = at, cell
        self._empty[cell] += 1
        self._rank(cell)

    def _leave(self, taxi: int) -> None:
        if taxi in self._taxis:
            _, cell = self._taxis.pop(taxi)
            self._empty[cell] -= 1
            self._rank(cell)

    def _twice_median(self, cell: int) -> int:
        cents = self._profits[cell]
        return cents[(len(cents) - 1) // 2] + cents[len(cents) // 2]

    def _rank(self, cell: int) -> None:
        ranked = self._profits[cell] and self._empty[cell]
        self._board.put(cell, (-self._twice_median(cell) / self._empty[cell],) if ranked else None)
        if not self._profits[cell]:
            del self._profits[cell]
        if not self._empty[cell]:
            del self._empty[cell]
