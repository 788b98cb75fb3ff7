"""The manager's clocks: a monotonic one for intervals, the time of day for what is written down."""

from __future__ import annotations

from collections.abc import Callable

from understudy.model.run import Rhythm

TICK_S = 0.05
"""Between two ticks of the manager."""


class RunClock:
    """How long the manager has been up, how old the run is, and when its first epoch was due.

    A restarted manager has nothing but the time of day to tell how long it was away. That may have been set back, so it
    assumes that at least as much time has passed as the delivered epochs took.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        wall: Callable[[], float],
        rhythm: Rhythm | None,
        delivered: int,
        running_since: float | None,
    ) -> None:
        self.now, self.wall = clock, wall
        self._began = self._turned_at = clock()
        self._anchor = clock()
        if rhythm is not None:
            least = 0.0 if rhythm.fast else (delivered - rhythm.epoch) * rhythm.epoch_s
            self._anchor -= max(wall() - rhythm.time, least, 0.0)
        self._running_since = clock() - max(0.0, wall() - (running_since or wall()))

    def begin(self) -> None:
        """Data flows from now on."""
        self._anchor = self._running_since = self.now()

    @property
    def waited_s(self) -> float:
        """Since the manager started, without the time it was kept from its CPU."""
        return self.now() - self._began

    @property
    def age_s(self) -> float:
        """Since data flows."""
        return self.now() - self._running_since

    @property
    def rhythm_age_s(self) -> float:
        """Since the first epoch of the rhythm was due."""
        return self.now() - self._anchor

    def notice_gap(self, tolerated_s: float) -> float:
        """The seconds for which the manager was stopped or kept from its CPU; 0 if that was not too long.

        It has not heard what was sent meanwhile, so nodes were not silent for that time. Called before anything is
        judged by its age.
        """
        now = self.now()
        away_s = now - self._turned_at - TICK_S
        self._turned_at = now
        if away_s <= tolerated_s:
            return 0.0
        self._began += away_s
        return away_s
