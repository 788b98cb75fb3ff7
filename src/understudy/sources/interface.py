"""What a source must offer. A new source is one file in this folder and one line in its `__init__`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

Position = Any
"""Where an epoch ends in the input: anything JSON can hold, or None before the first row."""


class EndOfSource(Exception):
    """Raised by `cut` when the input ended before this epoch; every later epoch is past the end too."""


class SourceReader(ABC):
    """One slice of a source, read epoch by epoch, in order; opened anew wherever the slice is deployed.

    Called from one thread at a time; calls may block, but not for longer than a few seconds without returning, because
    a source is stopped between two calls. Epochs start at any number after a recovery.
    """

    @abstractmethod
    def cut(self, epoch: int, start: Position) -> Position:
        """Where the epoch ends, given where it starts (the end of the epoch before, None for epoch 0).

        Called only once per epoch for a source with `recorded = True`: the first answer is kept. Otherwise it must be
        a pure function of the epoch; it may then ignore `start` and answer None.
        """

    @abstractmethod
    def read(self, epoch: int, start: Position, end: Position) -> pa.Table:
        """The rows of the epoch, the same whenever and wherever it is asked; cast to the schema by the caller."""

    def bookmark(self, epoch: int) -> Position | None:  # noqa: ARG002 - for those who override it
        """From where this epoch and those after it can be read: anything JSON can hold, None for no shortcut.

        Asked now and then for an epoch that was just read. It is kept without a sync, so it may be lost.
        """
        return None

    def seek(self, bookmark: Position) -> None:  # noqa: B027 - most readers know no bookmarks
        """Goes to a bookmark that another reader of this slice has made; called before anything is read."""

    def close(self) -> None:  # noqa: B027 - most readers hold nothing
        """Gives back what the reader holds."""


class Source(ABC):
    """A description of an input; frozen, cheap, made in the user's file. Work starts with `open`."""

    recorded: bool = False
    """True if a cut depends on when it is made: it is then written down once, and the first writer wins."""

    schema: pa.Schema
    """What the rows look like, in the Arrow types Spark uses (see `understudy.model.schema.parse`)."""

    @abstractmethod
    def open(self, slice_index: int, slices: int, epoch_s: float) -> SourceReader: ...
