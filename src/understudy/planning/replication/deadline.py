"""One time limit shared by all steps of a planner."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Deadline:
    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._seconds = seconds

    def elapsed(self) -> float:
        return self._clock() - self._start

    def left(self) -> float:
        return max(0.0, self._seconds - self.elapsed())

    def over(self) -> bool:
        return self.left() <= 0
