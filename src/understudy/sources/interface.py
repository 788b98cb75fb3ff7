"""What a source must offer. A new source is one file in this folder and one line in its `__init__`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

Position = Any
"""Where an epoch ends in the input: anything JSON can hold, or None before the first row."""


class EndOfSource(Exception):
    """Raised by `SourceReader.cut` when the input ended before the epoch; every later epoch is past the end too."""


class SourceReader(ABC):
    """One slice of a source, read epoch by epoch, in order; opened anew wherever the slice is deployed.

    Subclass it for a source of your own.

    Notes
    -----
    What an implementation may rely on, and what it owes:

    - One thread at a time calls it. After a recovery the first epoch asked for can be any number.
    - A call must return within a few seconds, because a source is stopped between two calls.
    - `read` returns the same rows for the same epoch, on every node and at any time.
    """

    @abstractmethod
    def cut(self, epoch: int, start: Position) -> Position:
        """Returns where the epoch ends in the input.

        Parameters
        ----------
        epoch : int
            Number of the epoch, from 0.
        start : JSON value or None
            Where the epoch starts: the end of the epoch before, None for epoch 0.

        Returns
        -------
        JSON value or None
            The end of the epoch. For a source with ``recorded = True`` the first returned value is recorded and used
            ever after. Otherwise the result must be a pure function of the epoch; it may then ignore `start` and be
            None.

        Raises
        ------
        EndOfSource
            If the input ended before this epoch.
        """

    @abstractmethod
    def read(self, epoch: int, start: Position, end: Position) -> pa.Table:
        """Returns the rows of the epoch, the same rows on every node and at any time.

        Parameters
        ----------
        epoch : int
            Number of the epoch.
        start : JSON value or None
            Where it starts, as for `cut`.
        end : JSON value or None
            Where it ends: what `cut` returned.

        Returns
        -------
        pyarrow.Table
            The caller casts it to the schema of the source.
        """

    def bookmark(self, epoch: int) -> Position | None:  # noqa: ARG002 - for those who override it
        """Returns a place from which this epoch and later ones can be read, so that a successor need not start over.

        Called now and then for an epoch that was just read. The bookmark is stored without a sync and may be lost.

        Parameters
        ----------
        epoch : int
            Number of the epoch that was just read.

        Returns
        -------
        JSON value or None
            None if there is no shortcut.
        """
        return None

    def seek(self, bookmark: Position) -> None:  # noqa: B027 - most readers know no bookmarks
        """Goes to a bookmark of another reader of this slice; called before anything is read.

        Parameters
        ----------
        bookmark : JSON value
            What `bookmark` returned there.
        """

    def close(self) -> None:  # noqa: B027 - most readers hold nothing
        """Releases files and connections."""


class Source(ABC):
    """A description of an input, made in the user's file: frozen and cheap. Work starts with `open`.

    Subclass it for a source of your own; `us.sources.Generator` is the shortest example.

    Attributes
    ----------
    recorded : bool
        True if a cut depends on when it is made. It is then recorded once, and the first writer wins.
    schema : pyarrow.Schema
        What the rows look like, in the Arrow types that Spark uses.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import understudy as us
    >>> class Ones(us.sources.Source):
    ...     schema = pa.schema({"n": pa.int64()})
    ...     def open(self, slice_index, slices, epoch_s):
    ...         return OnesReader()
    >>> class OnesReader(us.sources.SourceReader):
    ...     def cut(self, epoch, start):
    ...         return None
    ...     def read(self, epoch, start, end):
    ...         return pa.table({"n": [1]})
    >>> app = us.Topology("ones")
    >>> app.source("ones", Ones()).name
    'ones'
    """

    recorded: bool = False
    """True if a cut depends on when it is made: it is then written down once, and the first writer wins."""

    schema: pa.Schema
    """What the rows look like, in the Arrow types Spark uses (see `understudy.model.schema.parse`)."""

    @abstractmethod
    def open(self, slice_index: int, slices: int, epoch_s: float) -> SourceReader:
        """Opens one slice, on the node where it is deployed.

        Parameters
        ----------
        slice_index : int
            Which slice, from 0.
        slices : int
            How many slices the source has.
        epoch_s : float
            Length of an epoch in seconds.

        Returns
        -------
        SourceReader
        """
