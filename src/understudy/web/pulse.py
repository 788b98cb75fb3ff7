"""How regularly the manager's loop turns: the number that a busy dashboard must not change."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Histogram

STALLED_S = 5.0
_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.055, 0.06, 0.075, 0.1, 0.25, 0.5, 1.0, 5.0)


@dataclass
class Pulse:
    registry: CollectorRegistry
    clock: Callable[[], float] = time.monotonic
    _began: float | None = field(default=None, init=False)
    _ended: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._period = Histogram(
            "understudy_manager_tick_period_seconds",
            "Time from the beginning of a tick of the manager to the beginning of the next.",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._duration = Histogram(
            "understudy_manager_tick_duration_seconds",
            "Time the manager took for one tick.",
            buckets=_BUCKETS,
            registry=self.registry,
        )

    def begin(self) -> None:
        now = self.clock()
        if self._began is not None:
            self._period.observe(now - self._began)
        self._began = now

    def end(self) -> None:
        self._ended = self.clock()
        if self._began is not None:
            self._duration.observe(self._ended - self._began)

    @property
    def beating(self) -> bool:
        """Whether the loop turned lately. Before the first tick there is nothing to be late for."""
        return self._ended is None or self.clock() - self._ended < STALLED_S
