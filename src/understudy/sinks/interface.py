"""What a sink must offer. A new sink is one file in this folder and one line in its `__init__`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa


class Written(IntEnum):
    """What a writer knows after it wrote an epoch; false in a condition if nothing changed.

    - ``THERE``: the target held this epoch already.
    - ``ONCE``: the epoch is new to the target.
    - ``AGAIN``: an earlier writer was interrupted while it delivered the epoch, so the target may have it twice.

    Examples
    --------
    >>> import understudy as us
    >>> bool(us.sinks.Written.THERE), bool(us.sinks.Written.ONCE)
    (False, True)
    """

    THERE = 0
    ONCE = 1
    AGAIN = 2


class SinkWriter(ABC):
    """Writes epochs to the outside, in order.

    Subclass it for a sink of your own.

    Notes
    -----
    One thread at a time calls it. For a moment after a failover two writers of one sink can exist, in different
    processes.
    """

    @abstractmethod
    def write(self, epoch: int, rows: pa.Table) -> Written:
        """Writes one epoch as one transaction.

        It must be idempotent: an epoch that the target holds is left alone. A crash must leave the whole epoch or
        nothing of it. When the call returns, the epoch must survive a power cut, even if an earlier writer wrote it.

        Parameters
        ----------
        epoch : int
            Number of the epoch.
        rows : pyarrow.Table
            Its rows; there may be none.

        Returns
        -------
        Written
            What is known of the epoch now.
        """

    def write_tentative(self, epoch: int, rows: pa.Table, missing: tuple[str, ...]) -> None:
        """Writes what there is of an epoch while slices are missing, marked as tentative.

        Called only for a sink that `takes_tentative`, on a writer of `open_tentative`. `write` follows later with the
        whole epoch, and then `withdraw_tentative`. Whoever reads the target takes the stable rows of an epoch as soon
        as they are there. The same epoch may be written again: the last call counts.

        Parameters
        ----------
        epoch : int
            Number of the epoch.
        rows : pyarrow.Table
            The rows that could be made without the missing slices.
        missing : tuple of str
            The slices that are not in it, such as ``"counts[1]"``.

        Raises
        ------
        NotImplementedError
            If the sink takes no tentative output.
        """
        raise NotImplementedError(type(self))

    def withdraw_tentative(self, epoch: int) -> None:
        """Removes the tentative rows of an epoch, if there are any. Called after `write` has written the epoch.

        Parameters
        ----------
        epoch : int
            Number of the epoch.

        Raises
        ------
        NotImplementedError
            If the sink takes no tentative output.
        """
        raise NotImplementedError(type(self))

    def close(self) -> None:  # noqa: B027 - most writers hold nothing
        """Releases files and connections."""


class Sink(ABC):
    """A description of a target, made in the user's file: frozen and cheap. Work starts with `open`.

    Subclass it for a sink of your own, or pass a function to `us.sinks.Call`.

    Examples
    --------
    >>> import understudy as us
    >>> class Counting(us.sinks.Sink, us.sinks.SinkWriter):
    ...     def __init__(self):
    ...         self.epochs = {}
    ...     def open(self, name, home, run):
    ...         return self
    ...     def write(self, epoch, rows):
    ...         new = epoch not in self.epochs
    ...         self.epochs.setdefault(epoch, rows.num_rows)
    ...         return us.sinks.Written.ONCE if new else us.sinks.Written.THERE
    >>> app = us.Topology("counting")
    >>> app.sink("count", "text", Counting()).name
    'count'
    """

    @abstractmethod
    def open(self, name: str, home: Path, run: str) -> SinkWriter:
        """Opens the target, on the node where the sink is deployed.

        Parameters
        ----------
        name : str
            Name of the sink in its topology.
        home : Path
            The run's home directory. Relative paths of file sinks lie under ``home / "out"``.
        run : str
            Id of the run.

        Returns
        -------
        SinkWriter

        Raises
        ------
        InvalidInput
            If the target holds epochs of another run or another sink: they must not be mixed.
        """

    @property
    def takes_tentative(self) -> bool:
        """Whether writers of this sink can write tentative epochs and withdraw them. Default: False."""
        return False

    def open_tentative(self, name: str, home: Path, run: str) -> SinkWriter:
        """Opens the target for tentative epochs, beside the writer of the stable ones. Calls `open` by default.

        Parameters
        ----------
        name : str
            Name of the sink in its topology.
        home : Path
            The run's home directory.
        run : str
            Id of the run.

        Returns
        -------
        SinkWriter
        """
        return self.open(name, home, run)

    def directory(self) -> str | Path | None:
        """Returns the directory that a file sink needs to itself; no two sinks of a topology may share one.

        Returns
        -------
        str, Path or None
            None for a sink that writes no files.
        """
        return None
