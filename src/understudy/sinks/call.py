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
    """A sink that calls a function for every epoch, in order; it delivers at least once.

    Parameters
    ----------
    function : callable
        Called as ``function(epoch, table)``, with a ``pyarrow.Table``, also for an epoch without rows.

    Raises
    ------
    InvalidInput
        If ``function`` cannot be called with two arguments.

    Notes
    -----
    - Every call is noted before and after. A crash between the two, or a second writer in the moment of a failover,
      repeats the call with the same rows. Use the epoch's number, for example as the key of a transaction, to do
      nothing the second time.
    - The report counts repeated epochs (``duplicate_epochs``), and the verdict is then ``at least once``.
    - An epoch whose call raised was not delivered. It is tried again, which does not count as repeated.

    Examples
    --------
    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> import understudy as us
    >>> delivered = {}
    >>> def deliver(epoch, table):
    ...     delivered[epoch] = table.num_rows
    >>> writer = us.sinks.Call(deliver).open("deliver", Path.cwd(), run="1")
    >>> writer.write(0, pa.table({"n": [1, 2, 3]})).name
    'ONCE'
    >>> delivered
    {0: 3}
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
        """Opens the notes of a run; see `Sink.open`."""
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
