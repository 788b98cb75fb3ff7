"""Where checkpoints are shipped to and restored from. A new store is one file in this folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from understudy.model.names import SliceId

Watermarks = tuple[int | None, ...]
"""The watermark of every input in milliseconds, by place in the plan, None where there were no rows yet; empty for an
operator with fewer than two. Spark's own checkpoint holds the smallest only."""


@dataclass(frozen=True)
class Entry:
    """A file of a checkpoint: its name inside, where it is stored, and what it must look like."""

    name: str
    stored: str
    size: int
    crc: int


@dataclass(frozen=True)
class Marker:
    """The record that makes a shipped checkpoint complete: every file it needs.

    `watermarks` is None in markers of versions that did not keep them.
    """

    epoch: int
    generation: int
    files: tuple[Entry, ...]
    watermarks: Watermarks | None = None


@dataclass(frozen=True)
class Checkpoint:
    """A local checkpoint as of its newest committed batch; later batches may be in the making beside it."""

    directory: Path
    batch: int
    epoch: int
    watermarks: Watermarks = ()


@dataclass(frozen=True)
class Shipment:
    """Bytes that were copied, and bytes a restore would read."""

    copied: int
    whole: int


@dataclass
class Shipped:
    """What store and local checkpoint have in common, by name: the time and size of the local file, and the entry."""

    seen: dict[str, tuple[int, int, Entry]] = field(default_factory=dict)


OnDamaged = Callable[[int, str], None]
"""Hears the epoch of a checkpoint that was found damaged and no longer counts, and what is wrong with it."""


def ignore_damage(epoch: int, why: str) -> None:
    pass


class CheckpointStore(Protocol):
    """The shipped checkpoints of one slice. Several replicas of the slice may use it at once, from several nodes.

    A store that is a service may be away. Then `newest` returns what was seen last and raises nothing, `restore` waits,
    and the others raise `errors.Away` soon: whoever called them goes on without, and tries again.
    """

    def ship(self, checkpoint: Checkpoint | None, epoch: int, generation: int, shipped: Shipped) -> Shipment:
        """Copies what is new in a checkpoint, then writes its marker. A slice without state has no checkpoint."""
        ...

    def newest(self, *, fresh: bool = False) -> int:
        """The newest epoch whose state was shipped, -1 if none.

        Asked in every decision of a replica: it must not wait. Where looking takes long, it returns what the last look
        found and begins another. `fresh` looks at once, and may take a while or raise.
        """
        ...

    def acknowledged(self, released: int) -> int:
        """The epoch up to which this slice never needs its input again, if all readers acknowledged `released`."""
        ...

    def restore(
        self, local: Path, before: int | None, on_held: Callable[[Marker], None] = ..., on_damaged: OnDamaged = ...
    ) -> tuple[Marker | None, Shipped]:
        """Brings the newest usable checkpoint (of an epoch below `before`) into an empty local directory.

        Damaged ones that it passes over no longer count: not for `newest`, `acknowledged` or `recycle`.
        """
        ...

    def pull(self, local: Path, shipped: Shipped, above: int, on_damaged: OnDamaged = ...) -> tuple[Marker, int] | None:
        """Brings what is new in the newest checkpoint after an epoch to a directory on which a query waits.

        None if there is nothing newer, or if it is damaged; then it no longer counts.
        """
        ...

    def recycle(self, released: int) -> None:
        """Removes checkpoints nobody needs."""
        ...


class Checkpoints(Protocol):
    """The shipped checkpoints of a run, as one node sees them."""

    def of(self, slice_id: SliceId) -> CheckpointStore:
        """The store of one slice. Every replica has its own."""
        ...

    def close(self) -> None:
        """Lets go of threads and connections."""
        ...
