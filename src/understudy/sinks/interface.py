"""What a sink must offer. A new sink is one file in this folder and one line in its `__init__`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa


class Written(IntEnum):
    """What a writer knows after an epoch was written. False in a condition if it changed nothing.

    - `THERE`: the target held this epoch already.
    - `ONCE`: it is new to the target.
    - `AGAIN`: a writer before this one was interrupted while it delivered the epoch, so the target may have it twice.
    """

    THERE = 0
    ONCE = 1
    AGAIN = 2


class SinkWriter(ABC):
    """Writes epochs to the outside, in order, from one thread; two writers may exist for a moment after a failover."""

    @abstractmethod
    def write(self, epoch: int, rows: pa.Table) -> Written:
        """Writes one epoch as one transaction and returns what is known of it.

        Idempotent: an epoch that is there is left alone. A crash leaves the whole epoch or nothing of it. When it
        returns, the epoch survives a power cut, also one that was there already.
        """

    def close(self) -> None:  # noqa: B027 - most writers hold nothing
        """Gives back what the writer holds."""


class Sink(ABC):
    """A description of a target; frozen, cheap, made in the user's file. Work starts with `open`."""

    @abstractmethod
    def open(self, name: str, home: Path, run: str) -> SinkWriter:
        """Opens the target for the run with this id. Relative paths lie under `home / "out"`.

        A target that holds another run's epochs is refused with an error, never mixed with this one's.
        """

    def directory(self) -> str | Path | None:
        """The directory the sink has to itself, if it writes files: no two sinks of a topology may share one."""
        return None
