"""When the launcher starts the manager again, and when it gives up: judged from what it sees of the process."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from understudy.model.config import DEFAULTS, ManagerSection


class Measure(StrEnum):
    KEEP = "keep"
    RESTART = "restart"
    """It has ended: start another."""
    REPLACE = "replace"
    """It hangs: end it, start another."""
    GIVE_UP = "give up"


@dataclass
class Vigil:
    """Errors and hangs count; a manager that was killed by a signal is started again without end, as a machine that
    lost its power would be. One that ends with an error before it ever answered would only do so again."""

    started_at: float
    limits: ManagerSection = DEFAULTS.manager
    answered_at: float | None = None
    """By the process that runs now."""
    ever_answered: bool = False
    failures: int = 0

    def started(self, now: float) -> None:
        self.started_at, self.answered_at = now, None

    def judge(self, now: float, *, exit_code: int | None, answers: bool) -> Measure:
        """`exit_code` is None while the process lives, and negative if a signal ended it."""
        if exit_code is not None:
            return Measure.RESTART if exit_code <= 0 else self._trouble(Measure.RESTART)
        if answers:
            self.answered_at, self.ever_answered = now, True
            if now - self.started_at > self.limits.calm_s:
                self.failures = 0
            return Measure.KEEP
        silent_s, limit_s = self._silence(now)
        return self._trouble(Measure.REPLACE) if silent_s > limit_s else Measure.KEEP

    def _silence(self, now: float) -> tuple[float, float]:
        if self.answered_at is None:
            return now - self.started_at, self.limits.start_s
        return now - self.answered_at, self.limits.hung_s

    def _trouble(self, measure: Measure) -> Measure:
        self.failures += 1
        return measure if self.ever_answered and self.failures <= self.limits.max_restarts else Measure.GIVE_UP
