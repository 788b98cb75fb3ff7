"""What replicas need of the world: queries, rows, shipped checkpoints, a place to hold bags back.

`spark_edge.py` is the real one. The simulated cluster has one in memory, in which rows are tokens and time is a number;
the replicas above it are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from understudy.checkpoints.interface import Checkpoint, CheckpointStore, Marker
from understudy.log.bag import Bag
from understudy.log.interface import Log
from understudy.model.messages import Correction
from understudy.model.names import SliceId

Rows = Any
"""Rows of one epoch, in whatever form the edge works with: an Arrow table on a node, a token in the simulation."""


@dataclass(frozen=True)
class Input:
    """What a query is told about an epoch of its input, and which slices left a gap in it."""

    lines: tuple[str, ...]
    rows: int
    size: int
    lost: tuple[str, ...]
    places: dict[str, SliceId] = field(default_factory=dict)
    """The files it is read from, and whose they are."""


@dataclass(frozen=True)
class Delivery:
    """The rows of an epoch as a sink writes them."""

    rows: Rows
    count: int
    digest: str
    lost: tuple[str, ...]


class Query(Protocol):
    """One query behind its gate. All methods may be called from any thread."""

    name: str
    directory: Path

    @property
    def arrived(self) -> bool:
        """Whether it waits, or has waited, at its gate; before, nobody else may touch its directory."""
        ...

    @property
    def state_loaded(self) -> bool: ...

    @property
    def state_rows(self) -> int: ...

    @property
    def cpu_s(self) -> float: ...

    def start(self, first: int, restored: Marker | None) -> None:
        """Starts at an epoch, on the checkpoint that was restored to its directory, if there is one."""
        ...

    def announce(self, epoch: int, lines: Sequence[str]) -> None: ...

    def await_committed(self, epoch: int, millis: int) -> bool: ...

    def checkpoint(self) -> Checkpoint | None:
        """The newest committed checkpoint in its directory, without the watermarks of its inputs."""
        ...

    def watermarks(self, epoch: int) -> tuple[int | None, ...]:
        """The watermarks of the inputs as of an epoch that was committed a moment ago."""
        ...

    def forget_last_commit(self) -> int | None:
        """Lets the query run its last batch again when it starts; returns the epoch of that batch."""
        ...

    def jump(self, marker: Marker, *, keep_state: bool) -> bool:
        """Lets the waiting query go on from the checkpoint in its directory; False if it did not come to it."""
        ...

    def favour(self, primary: bool) -> None:
        """Inside a node, tasks of primaries go before those of secondaries."""
        ...

    def progress(self) -> Any: ...

    def stop(self) -> None: ...


class InputReader(Protocol):
    """Reads the bags of a slice's upstream slices. Raises `InputMissing` or `InputDamaged`."""

    def read(self, epoch: int) -> Input: ...

    def copy(self, epoch: int, found: Input) -> Input:
        """Brings the rows of an epoch into the node's own directory."""
        ...

    def discard(self, epoch: int) -> None:
        """Removes what was copied of this epoch and of those before it."""
        ...

    def deliver(self, epoch: int) -> Delivery: ...


class Spool(Protocol):
    """Bags held back. Used by one thread at a time."""

    def __len__(self) -> int: ...

    @property
    def epochs(self) -> tuple[int, ...]: ...

    def keep(self, made: Bag) -> None: ...

    def digest(self, epoch: int) -> str: ...

    def take(self, epoch: int) -> Bag: ...

    def drop(self, epoch: int) -> None: ...


class Copies(Protocol):
    """What a sink has written tentatively, until the stable epoch has replaced it."""

    def keep(self, epoch: int, rows: Rows) -> None: ...

    def until(self, epoch: int) -> list[int]:
        """The epochs up to this one that were written tentatively and not withdrawn."""
        ...

    def compare(self, epoch: int, rows: Rows) -> Correction | None:
        """How the tentative rows compare with the stable ones; None if that cannot be said."""
        ...

    def drop(self, epoch: int) -> None: ...


class Signal(Protocol):
    """What lets somebody who waits go on early; `threading.Event` on a node."""

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def wait(self, timeout: float | None = None) -> bool: ...


class Edge(Protocol):
    def query(
        self,
        slice_id: SliceId,
        name: str,
        directory: Path,
        batch: Callable[[int, Rows], None],
        ended: Callable[[BaseException | None], None],
    ) -> Query:
        """A query of a slice; `batch` gets the rows of every epoch, `ended` hears when it ends by itself, and why."""
        ...

    def store(self, slice_id: SliceId) -> CheckpointStore: ...

    def reader(self, slice_id: SliceId, directory: Path) -> InputReader: ...

    def spool(self, directory: Path) -> Spool: ...

    def bag(self, slice_id: SliceId, epoch: int, rows: Rows, lost: tuple[str, ...] = ()) -> Bag:
        """The rows of an epoch, divided for the slices that will read them."""
        ...

    def empty(self, operator: str) -> Rows: ...

    def signal(self) -> Signal: ...

    def spawn(self, name: str, turn: Callable[[], float | None], signal: Signal) -> Callable[[], None]:
        """Calls `turn` again and again beside the caller, until it returns None: after the seconds it returned, or as
        soon as the signal is set. Returns a function that waits for the end."""
        ...

    def remove(self, directory: Path) -> None:
        """Removes a directory of the node's own, if it is there."""
        ...

    # -- tentative output

    def branch_log(self, number: int) -> Log:
        """The log of a branch's own bags; those of branches before it are removed."""
        ...

    def drop_branch(self, number: int) -> None: ...

    def over(self, log: Log) -> Edge:
        """The same edge, reading its input from another log."""
        ...

    def copies(self, sink: str) -> Copies:
        """What a sink has written tentatively."""
        ...


class InputDamaged(Exception):
    """A bag that cannot be read, and whose it is."""

    def __init__(self, error: Any, upstream: SliceId, epoch: int) -> None:
        super().__init__(str(error))
        self.error, self.upstream, self.epoch = error, upstream, epoch


class InputMissing(Exception):
    """A bag that was there a moment ago: trimmed, or damaged and taken away by the slice that makes it again."""
