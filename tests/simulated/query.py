"""A query in memory: it waits behind its gate, runs one batch per epoch and commits it, as Spark does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.simulated.checkpoints import LocalDisk, State
from tests.simulated.scheduler import Process, Scheduler
from tests.simulated.tokens import next_state, output_token
from understudy.checkpoints.interface import Checkpoint, Marker
from understudy.model.names import SliceId


@dataclass
class Pace:
    """How long things take, in seconds. `batch` may be asked for every epoch, so that load can change."""

    start_s: float = 0.1
    commit_s: float = 0.005
    batch: Callable[[SliceId, int], float] = lambda _, __: 0.02


class SimQuery:
    """Epochs are announced by lines, each of which is a token of the input. `chance` makes it non-deterministic."""

    def __init__(
        self,
        scheduler: Scheduler,
        jvm: Process,
        disk: LocalDisk,
        pace: Callable[[], Pace],
        slice_id: SliceId,
        stateful: bool,
        name: str,
        directory: Path,
        batch: Callable[[int, Any], None],
        ended: Callable[[BaseException | None], None],
        chance: Callable[[], int] | None = None,
    ) -> None:
        self.name, self.directory = name, directory
        self._scheduler, self._jvm, self._disk, self._pace = scheduler, jvm, disk, pace
        self._slice, self._stateful, self._chance = slice_id, stateful, chance
        self._batch, self._ended = batch, ended
        self._announced: dict[int, tuple[int, ...]] = {}
        self._state = State(-1, 0, 0)
        self._current = -1
        """The newest epoch that was planned or jumped to."""
        self._again: int | None = None
        self._runs = False
        self.stopped = False
        self.committed = -1
        self.arrived = False
        self.state_loaded = False
        self.state_rows = 0
        self.cpu_s = 0.0

    def start(self, first: int, restored: Marker | None) -> None:
        self._current = first - 1
        if restored is not None and self._stateful:
            self._state = self._disk.states[self.directory]
        self._scheduler.after(self._pace().start_s, self._arrive, self._jvm)

    def _arrive(self) -> None:
        if self._again is None:
            self.arrived = True
            self.committed = max(self.committed, self._current)
        self._go_on()

    def announce(self, epoch: int, lines: Sequence[str]) -> None:
        self._announced[epoch] = tuple(int(line) for line in lines)
        self._go_on()

    def _go_on(self) -> None:
        if self._runs or self.stopped or (not self.arrived and self._again is None):
            return
        epoch = self._again if self._again is not None else self._current + 1
        if epoch not in self._announced:
            later = [number for number in self._announced if number > self._current]
            if self._again is not None or not later:
                return
            # The agent left some out: what it announced next comes next.
            epoch = min(later)
        self._runs = True
        self._scheduler.after(self._pace().batch(self._slice, epoch), self._run, self._jvm, epoch)

    def _run(self, epoch: int) -> None:
        if self.stopped:
            return
        inputs = self._announced[epoch]
        before = self._state.before if self._again is not None else self._state.token
        drawn = self._chance() if self._chance is not None else 0
        token = next_state(before, epoch, inputs) + drawn if self._stateful else 0
        out = output_token(self._slice, epoch, inputs, token) + drawn
        try:
            self._batch(epoch, out)
        except BaseException as error:  # noqa: BLE001 - as Spark: the query ends, and whoever watches it is told why
            self.stopped = True
            self._ended(error)
            return
        state = State(epoch, token, before)
        self._scheduler.after(self._pace().commit_s, self._commit, self._jvm, epoch, state)

    def _commit(self, epoch: int, state: State) -> None:
        if self.stopped:
            return
        if self._again is not None and self._stateful:
            assert state == self._disk.states[self.directory], "a state was loaded that is not the one shipped"
        self._state, self._current, self._runs, self._again = state, epoch, False, None
        if self._stateful:
            self._disk.states[self.directory] = state
        self.committed, self.arrived, self.state_loaded = max(self.committed, epoch), True, True
        for number in [number for number in self._announced if number <= epoch]:
            del self._announced[number]
        self._go_on()

    def await_committed(self, epoch: int, millis: int) -> bool:
        return self.committed >= epoch

    def checkpoint(self) -> Checkpoint | None:
        found = self._disk.states.get(self.directory)
        return None if found is None else Checkpoint(self.directory, found.epoch, found.epoch)

    def watermarks(self, epoch: int) -> tuple[int | None, ...]:
        return ()

    def forget_last_commit(self) -> int | None:
        self._again = self._disk.states[self.directory].epoch if self.directory in self._disk.states else None
        return self._again

    def jump(self, marker: Marker, *, keep_state: bool) -> bool:
        if self._runs or not self.arrived or marker.epoch < self._current:
            return False
        if self._stateful:
            self._state = self._disk.states[self.directory]
        self._current = marker.epoch
        self.committed = max(self.committed, marker.epoch)
        self.state_loaded = keep_state
        return True

    def favour(self, primary: bool) -> None:
        pass

    def progress(self) -> Any:
        return None

    def fail(self, error: BaseException) -> None:
        """The query dies by itself."""
        if not self.stopped:
            self.stopped = True
            self._ended(error)

    def stop(self) -> None:
        self.stopped = True
        self._disk.states.pop(self.directory, None)


def slower(pace: Pace, factor: float) -> Pace:
    return replace(pace, batch=lambda slice_id, epoch: factor * pace.batch(slice_id, epoch))
