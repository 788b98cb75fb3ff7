"""Query 1: the most frequent routes of the last 30 minutes. Plain Python, no Spark.

The partitioned operator `counts` counts the rides of every route and second. `Ranking` adds these counts up over the
window and keeps the routes in order.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from taxi_board import Board

WINDOW_US = 30 * 60 * 1_000_000


@dataclass(frozen=True)
class RankingState:
    """What a ranking remembers between two epochs; where it is long, as bytes of 64-bit numbers."""

    now: int = 0
    shown: bytes = b""
    counts: bytes = b""


class Ranking:
    """The ten most frequent routes of the last 30 minutes, kept in order second by second.

    A ride is in the window until a ride ends more than 30 minutes after it. More rides come first, then the later last
    drop-off, then the smaller code: the order follows from the window alone, not from how it came about.
    """

    def __init__(self, state: RankingState | None = None, window_us: int = WINDOW_US) -> None:
        state = state or RankingState()
        self._window = window_us
        self._now = state.now
        self._shown: list[int] = np.frombuffer(state.shown, np.int64).tolist()
        self._heap: list[tuple[int, int]] = []  # (second, route) of all counts, the oldest first
        self._counts: dict[tuple[int, int], int] = {}
        self._rides: Counter[int] = Counter()
        self._last: dict[int, int] = {}
        self._board = Board()
        for at, route, rides in np.frombuffer(state.counts, np.int64).reshape(-1, 3).tolist():
            self._enter(at, route, rides)

    def state(self) -> RankingState:
        counts = np.array([(*key, rides) for key, rides in sorted(self._counts.items())], np.int64)
        return RankingState(self._now, np.array(self._shown, np.int64).tobytes(), counts.tobytes())

    def second(self, at: int, counts: Iterable[tuple[int, int]]) -> list[tuple[int, int]] | None:
        """Takes in (route, rides) of everything that ended at one time.

        Returns the new top ten as (route, rides in the window) if their routes or their order changed. A count that
        comes again replaces the one before.
        """
        self._now = max(self._now, at)
        while self._heap and self._heap[0][0] < self._now - self._window:
            self._leave()
        if at >= self._now - self._window:
            for route, rides in counts:
                self._enter(at, route, rides)
        routes = self._board.first()
        if routes == self._shown:
            return None
        self._shown = routes
        return [(route, self._rides[route]) for route in routes]

    def _enter(self, at: int, route: int, rides: int) -> None:
        if (at, route) not in self._counts:
            heapq.heappush(self._heap, (at, route))
        self._rides[route] += rides - self._counts.get((at, route), 0)
        self._counts[at, route] = rides
        self._last[route] = max(self._last.get(route, 0), at)
        self._rank(route)

    def _leave(self) -> None:
        at, route = heapq.heappop(self._heap)
        self._rides[route] -= self._counts.pop((at, route))
        self._rank(route)

    def _rank(self, route: int) -> None:
        if self._rides[route]:
            self._board.put(route, (-self._rides[route], -self._last[route]))
        else:
            self._board.put(route, None)
            del self._rides[route], self._last[route]
