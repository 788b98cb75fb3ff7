"""From the check of the topology to the first epoch: is it right, is it the one the run began with?"""

from __future__ import annotations

from understudy.errors import InvalidInput
from understudy.model import fingerprint
from understudy.model.events import Running
from understudy.model.fingerprint import Fingerprint
from understudy.model.layout import Layout
from understudy.model.messages import Analysis, Checked, Failure
from understudy.model.snapshot import Phase
from understudy.runtime.clock import RunClock
from understudy.runtime.enactor import Enactor
from understudy.runtime.journal import Journal
from understudy.runtime.memory import RunMemory
from understudy.runtime.prepare import versions


class Opening:
    """Lets data flow once a node has checked the topology, or ends the run with the reason why it cannot."""

    def __init__(self, memory: RunMemory, journal: Journal, enactor: Enactor, clock: RunClock) -> None:
        self._memory, self._journal, self._enactor, self._clock = memory, journal, enactor, clock

    def hear(self, result: Checked) -> None:
        if self._memory.phase is not Phase.CHECKING:
            # A second answer: the check was given to another node when the first one was lost.
            return
        if result.failure is not None:
            self._enactor.fail(result.failure)
            return
        try:
            layout = self._memory.lay_out(result.operators)
        except InvalidInput as error:
            self._enactor.fail(Failure(what=error.what, why=error.why, fix=error.fix, final=True))
            return
        except Exception as error:  # noqa: BLE001 - a mistake in the user's topology ends the run, not the manager
            why = "the topology cannot be laid out"
            self._enactor.fail(Failure(what=str(error), why=why, fix="correct the application"))
            return
        found = self._fingerprint(layout, result.operators)
        if not self._refuse_changes(found):
            self._clock.begin()
            rhythm = self._memory.begin(result.operators, layout, found)
            self._journal.note(Running(epoch=rhythm.epoch))

    def refuse_changes(self) -> None:
        """Ends a run that goes on if its file was edited while the manager was away."""
        if self._memory.phase is Phase.RUNNING and self._memory.layout is not None:
            self._refuse_changes(self._fingerprint(self._memory.layout, self._memory.operators))

    def _fingerprint(self, layout: Layout, operators: dict[str, Analysis]) -> Fingerprint:
        found = fingerprint.of_application(self._memory.topology, versions())
        return found | fingerprint.of_queries(layout, operators)

    def _refuse_changes(self, now: Fingerprint) -> bool:
        """Whether the application is not the one whose state and epochs are in the home directory."""
        before = self._memory.store.fact("fingerprint")
        found = fingerprint.differences(before, now) if before is not None else []
        if found:
            error = fingerprint.refuse(found)
            self._enactor.fail(Failure(what=error.what, why=error.why, fix=error.fix, final=True))
        return bool(found)
