"""The grid and the ranking behind `taxi.py`: plain Python, no Spark.

The grid is the one of the DEBS 2015 Grand Challenge: 300 × 300 cells of 500 m, numbered from the north-west corner,
first to the east, then to the south; the steps in degrees are the challenge's own.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from dataclasses import dataclass

import numpy as np

CELLS = 300
LAT_STEP, LON_STEP = 0.004491556, 0.005986  # 500 m to the south and to the east
NORTH, WEST = 41.474937 + LAT_STEP / 2, -74.913585 - LON_STEP / 2  # cell 1.1 is centred half a step inside
TOP = 10
WINDOW_US = 30 * 60 * 1_000_000


def cell(longitude: float, latitude: float) -> tuple[int, int] | None:
    """The cell of a point, (1, 1) to (300, 300); None outside the grid, where the zero coordinates of dirt lie too."""
    x = int((longitude - WEST) // LON_STEP) + 1
    y = int((NORTH - latitude) // LAT_STEP) + 1
    return (x, y) if 1 <= x <= CELLS and 1 <= y <= CELLS else None


def route_code(start: tuple[int, int], end: tuple[int, int]) -> int:
    """A route as one number, to keep states small."""
    code = 0
    for number in (*start, *end):
        code = code * (CELLS + 1) + number
    return code


def route_name(code: int) -> str:
    """Like 150.162-151.165, from pickup to drop-off."""
    numbers = []
    for _ in range(4):
        code, number = divmod(code, CELLS + 1)
        numbers.append(number)
    end_y, end_x, start_y, start_x = numbers
    return f"{start_x}.{start_y}-{end_x}.{end_y}"


@dataclass(frozen=True)
class State:
    """What the ranking must remember between two epochs, as bytes of 64-bit numbers where it is long."""

    now: int = 0
    shown: bytes = b""
    rides: bytes = b""


class Ranking:
    """The most frequent routes of the last 30 minutes, kept in order ride by ride.

    A ride is in the window until a ride is dropped off more than 30 minutes after it. More rides come first, then the
    later last drop-off, then the smaller code: the order follows from the window alone, not from how it came about.
    """

    def __init__(self, state: State | None = None, window_us: int = WINDOW_US) -> None:
        state = state or State()
        self._window = window_us
        self._now = state.now
        self._shown: list[int] = np.frombuffer(state.shown, np.int64).tolist()
        self._rides: list[tuple[int, int]] = []  # a heap of (drop-off, route)
        self._counts: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self._order: list[tuple[int, int, int]] = []
        for dropoff, route in np.frombuffer(state.rides, np.int64).reshape(-1, 2).tolist():
            self._enter(dropoff, route)

    def state(self) -> State:
        rides = np.array(sorted(self._rides), np.int64)
        return State(self._now, np.array(self._shown, np.int64).tobytes(), rides.tobytes())

    def add(self, dropoff: int, route: int) -> list[tuple[int, int]] | None:
        """Takes in one ride; the new top ten as (route, rides) if their routes or their order changed."""
        self._now = max(self._now, dropoff)
        while self._rides and self._rides[0][0] < self._now - self._window:
            self._leave()
        if dropoff >= self._now - self._window:
            self._enter(dropoff, route)
        top = [(code, -count) for count, _, code in self._order[:TOP]]
        routes = [code for code, _ in top]
        if routes == self._shown:
            return None
        self._shown = routes
        return top

    def _enter(self, dropoff: int, route: int) -> None:
        heapq.heappush(self._rides, (dropoff, route))
        self._move(route, 1, max(self._last.get(route, 0), dropoff))

    def _leave(self) -> None:
        _, route = heapq.heappop(self._rides)
        self._move(route, -1, self._last[route])

    def _move(self, route: int, change: int, last: int) -> None:
        before = self._counts.get(route, 0)
        if before:
            del self._order[bisect_left(self._order, (-before, -self._last[route], route))]
        if before + change:
            self._counts[route], self._last[route] = before + change, last
            insort(self._order, (-self._counts[route], -last, route))
        else:
            del self._counts[route], self._last[route]
