"""Where bags are published and replayed from. A new log is one file in this folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from understudy.log import bag
from understudy.model.layout import Channel
from understudy.model.names import SliceId
from understudy.model.segments import SegmentPlace


@dataclass(frozen=True)
class Stored:
    """A published bag, where this node can read it."""

    header: bag.Header
    path: Path
    start: int

    def lines(self, channel: Channel) -> list[str]:
        """The lines for the gate of a query: where the part that this channel reads lies."""
        return [
            str(SegmentPlace(channel.input, self.start + s.offset, s.length, s.rows, s.crc, str(self.path)))
            for s in self.header.part(channel.split, channel.part)
        ]

    def rows(self, channel: Channel, schema: pa.Schema) -> pa.Table:
        return bag.read_rows(self.path, self.start, self.header.part(channel.split, channel.part), schema)


class Fenced(Exception):
    """A bag was not published because a newer replica has taken over."""

    def __init__(self, slice_id: SliceId, epoch: int) -> None:
        super().__init__(f"a newer replica of {slice_id} has taken over; epoch {epoch} is its own to publish")


@dataclass(frozen=True)
class Published:
    """`first` is False if the bag was there already; `stored` is the one that counts either way.

    Its header can be read at once. A log beyond this node's disk puts the file at its path when it is fetched.
    """

    first: bool
    stored: Stored


class Log(Protocol):
    """All methods may be called from several threads and processes at once.

    `publish` and `record` are put-if-absent: the first writer wins, and every caller gets what won. Without `durable`
    a bag survives killed processes; `settle` makes all bags up to an epoch survive a power cut as well. A log that has
    every bag durable before it counts does both always.

    What this process has written it finds at once. What others have written may take some milliseconds to be seen, but
    never goes back, and whoever must know better appends: `publish`, `record` and `fence` return when everything that
    was appended before them was seen.
    """

    def publish(self, bag: bag.Bag, *, durable: bool, generation: int | None = None) -> Published:
        """Publishes a bag if its epoch has none.

        A log whose writes have an order refuses the bag of a `generation` behind a fence for a newer one, and raises
        `Fenced`. One without that order leaves it to writers to look at `fenced`, and the first bag counts.
        """
        ...

    def fetch(self, slice_id: SliceId, epoch: int) -> Stored | None: ...

    def await_bags(self, slices: Sequence[SliceId], epoch: int, timeout_s: float) -> bool:
        """Waits until all these slices have published the epoch."""
        ...

    def newest(self, slice_id: SliceId) -> int:
        """The newest published epoch, -1 if there is none; never lost by trimming.

        Takes as long with many bags as with few. While a damaged bag is being made again, it may return the epoch
        before that one.
        """
        ...

    def reach(self, reader: SliceId, epoch: int) -> None:
        """Records the progress of a reader that publishes nothing itself; its upstream slices wait for it."""
        ...

    def reached(self, reader: SliceId) -> int:
        """The epoch noted last, -1 if none."""
        ...

    def acknowledged(self, reader: SliceId, upstream: SliceId) -> int:
        """The newest epoch this reader has acknowledged, -1 if none: it may be trimmed, and those before it."""
        ...

    def first_missing(self, slice_id: SliceId, above: int = -1) -> int:
        """The first epoch after the trimmed ones, and above this one, that is not published."""
        ...

    def settle(self, slice_id: SliceId, epoch: int) -> None:
        """Makes all bags of the slice up to this epoch durable, whoever published them."""
        ...

    def acknowledge(self, reader: SliceId, upstream: SliceId, epoch: int) -> None:
        """Records that the reader will not read this epoch of the upstream slice, or an earlier one, again."""
        ...

    def floor(self, slice_id: SliceId, readers: Sequence[SliceId]) -> int:
        """The newest epoch that all these readers have acknowledged, -1 if none. Without readers: the newest bag."""
        ...

    def trim(self, slice_id: SliceId, readers: Sequence[SliceId]) -> int:
        """Removes the bags up to the floor, except the newest; returns the last epoch removed or -1.

        The acknowledgements it builds on are made durable first: after a power cut the floor is not below what is gone.
        """
        ...

    def damaged(self, slice_id: SliceId, first: int) -> list[int]:
        """The epochs from `first` on whose bags are there and cannot be read. Reads all of them."""
        ...

    def set_aside(self, slice_id: SliceId, epoch: int) -> None:
        """Takes a damaged bag out of the way, so that it can be published again.

        Damage to a copy on this node is mended from the log, and is none to the bag. An intact bag is left in place: it
        has already been rebuilt, and the request is stale.
        """
        ...

    def fence(self, slice_id: SliceId, generation: int) -> None:
        """Forbids replicas of an older generation to publish from now on; they learn it from `fenced`."""
        ...

    def fenced(self, slice_id: SliceId) -> int:
        """The newest generation that was fenced for, 0 if none."""
        ...

    def record(self, slice_id: SliceId, epoch: int, value: Any) -> Any:
        """Writes down where an epoch of a live source ends, durably; returns the value that was recorded first."""
        ...

    def recorded(self, slice_id: SliceId, epoch: int) -> Any:
        """What was recorded for the epoch, or None."""
        ...

    def cuts(self, slice_id: SliceId) -> range:
        """The epochs whose cuts are kept: an unbroken run up to the newest one recorded."""
        ...

    def trim_cuts(self, slice_id: SliceId, readers: Mapping[SliceId, Sequence[SliceId]]) -> None:
        """Removes the cuts below the floors of all slices that share them (given with their readers), except the
        newest. As with bags, the acknowledgements are made durable first."""
        ...

    def mark(self, slice_id: SliceId, epoch: int, bookmark: Any) -> None:
        """Keeps a bookmark of a source: from there the epoch and those after it can be read. Not durable, only a
        shortcut. Trimming removes what no epoch above the floor needs."""
        ...

    def bookmark(self, slice_id: SliceId, epoch: int) -> Any:
        """The newest bookmark of an epoch up to this one, None if there is none."""
        ...

    def close(self) -> None:
        """Writes what was handed over and lets go of threads and connections."""
        ...
