"""The report of a run that goes on: computed for the first who asks, the same for those who ask soon after."""

from __future__ import annotations

from understudy.model.snapshot import Phase
from understudy.reporting.report import Report
from understudy.runtime.watched import Watched

FRESH_S = 0.5


class Reports:
    def __init__(self, manager: Watched) -> None:
        self._manager = manager
        self._kept: tuple[float, Phase, Report] | None = None

    def report(self) -> Report:
        """At most half a second old, and never older than the phase of the run."""
        now, phase = self._manager.now(), self._manager.state().phase
        if self._kept is None or self._kept[1] is not phase or not 0 <= now - self._kept[0] < FRESH_S:
            self._kept = (now, phase, self._manager.report())
        return self._kept[2]
