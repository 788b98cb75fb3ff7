"""Epochs handed to a function of the user's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from understudy.errors import InvalidInput
from understudy.log.disk import Disk
from understudy.model.arity import check_arity
from understudy.sinks.interface import Sink, SinkWriter, Written
from understudy.sinks.note import Note


@dataclass(frozen=True)
class Call(Sink):
    """Calls `function(epoch, table)` for every epoch, in order, also for one without rows.

    Every call is noted before and after. A crash between the two, or a second writer in the moment of a failover, makes
    the function see an epoch again, with the same rows: let it use the number, for example as the key of a transaction,
    to do nothing the second time. The report counts such epochs (`duplicate_epochs`) and says `at least once`. An epoch
    whose call raised was not delivered and comes again, which does not count.
    """

    function: Callable[[int, pa.Table], object]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidInput(
                f"a call sink needs a function, not {self.function!r}",
                why="it is called with the epoch's number and its rows",
                fix="pass the function itself: us.sinks.Call(deliver)",
            )
        check_arity(self.function, "the function of a call sink", ("epoch", "rows"))

    def open(self, name: str, home: Path, run: str) -> SinkWriter:
        return NotedWriter(Note(name, home, run), name, self.function)


class NotedWriter(SinkWriter):
    def __init__(
        self, note: Note, name: str, deliver: Callable[[int, pa.Table], object], disk: Disk | None = None
    ) -> None:
        self._note, self._name, self._deliver = note, name, deliver
        self._disk = disk or Disk()

    def write(self, epoch: int, rows: pa.Table) -> Written:
        if epoch <= self._note.last():
            return Written.THERE
        first = self._note.begin(epoch)
        if epoch <= self._note.last():
            return Written.THERE
        try:
            self._deliver(epoch, rows)
        except Exception as error:
            self._note.withdraw(epoch)
            error.add_note(f"while sink '{self._name}' delivered epoch {epoch} with {rows.num_rows} rows")
            raise
        self._disk.on_step("delivered")
        self._note.advance(epoch)
        return Written.ONCE if first else Written.AGAIN
