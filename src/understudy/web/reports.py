"""The report of a run that goes on, computed at most twice a second."""

from __future__ import annotations

from understudy.model.report import Report
from understudy.model.snapshot import Phase
from understudy.web.ports import RunReader

FRESH_S = 0.5


class Reports:
    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self._kept: tuple[float, Phase, Report] | None = None

    def report(self) -> Report:
        """At most half a second old, and never older than the phase of the run."""
        now, phase = self._reader.now(), self._reader.state().phase
        if self._kept is None or self._kept[1] is not phase or not 0 <= now - self._kept[0] < FRESH_S:
            self._kept = (now, phase, self._reader.report())
        return self._kept[2]
