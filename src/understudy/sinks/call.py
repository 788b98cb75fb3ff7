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
    tentative : callable, optional
        Called as ``tentative(epoch, table, missing)`` with what there is of an epoch while slices are missing, where
        the topology has tentative output. ``missing`` names the slices. Default: the sink takes no tentative output.
    withdraw : callable, optional
        Called as ``withdraw(epoch)`` after ``function`` was called for an epoch that was tentative. Default: nothing
        is called, for targets in which the stable epoch replaces the tentative one by itself.

    Raises
    ------
    InvalidInput
        If a function cannot be called with these arguments, or ``withdraw`` is given without ``tentative``.

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
    tentative: Callable[[int, pa.Table, tuple[str, ...]], object] | None = None
    withdraw: Callable[[int], object] | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidInput(
                f"a call sink needs a function, not {self.function!r}",
                why="it is called with the epoch's number and its rows",
                fix="pass the function itself: us.sinks.Call(deliver)",
            )
        check_arity(self.function, "the function of a call sink", ("epoch", "rows"))
        if self.tentative is not None:
            check_arity(self.tentative, "the tentative function of a call sink", ("epoch", "rows", "missing"))
        if self.withdraw is not None:
            check_arity(self.withdraw, "the withdraw function of a call sink", ("epoch",))
        if self.withdraw is not None and self.tentative is None:
            raise InvalidInput(
                "a call sink has withdraw= and no tentative=",
                why="only what was delivered tentatively can be withdrawn",
                fix="pass tentative= as well, or leave withdraw= out",
            )

    @property
    def takes_tentative(self) -> bool:
        """True if the function ``tentative`` was given."""
        return self.tentative is not None

    def open(self, name: str, home: Path, run: str) -> SinkWriter:
        """Opens the notes of a run; see `Sink.open`."""
        return NotedWriter(Note(name, home, run), name, self.function, withdraw=self.withdraw)

    def open_tentative(self, name: str, home: Path, run: str) -> SinkWriter:  # noqa: ARG002
        """Opens no notes: a tentative epoch may be delivered again; see `Sink.open_tentative`."""
        return TentativeCalls(self)


@dataclass(frozen=True)
class TentativeCalls(SinkWriter):
    """The writer of tentative epochs."""

    sink: Call

    def write(self, epoch: int, rows: pa.Table) -> Written:
        raise NotImplementedError("stable epochs have a writer of their own")

    def write_tentative(self, epoch: int, rows: pa.Table, missing: tuple[str, ...]) -> None:
        if self.sink.tentative is not None:
            self.sink.tentative(epoch, rows, missing)

    def withdraw_tentative(self, epoch: int) -> None:
        if self.sink.withdraw is not None:
            self.sink.withdraw(epoch)


class NotedWriter(SinkWriter):
    def __init__(
        self,
        note: Note,
        name: str,
        deliver: Callable[[int, pa.Table], object],
        disk: Disk | None = None,
        withdraw: Callable[[int], object] | None = None,
    ) -> None:
        self._note, self._name, self._deliver, self._withdraw = note, name, deliver, withdraw
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

    def withdraw_tentative(self, epoch: int) -> None:
        if self._withdraw is not None:
            self._withdraw(epoch)
