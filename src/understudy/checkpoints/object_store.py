"""Spark checkpoints in an object store: S3, Google Cloud Storage, Azure.

    <run>/<operator>/<slice>/head.json                                           which markers count
    <run>/<operator>/<slice>/markers/<sweep>/<epoch>-<generation>-<token>.json   every file of a checkpoint
    <run>/<operator>/<slice>/files/<sweep>/<sha256>-<token>                      a file, named by its content

The order of a shipment is that of the file store: new files, then the marker, then the head that lets it count. The
head is written only if nobody has changed it since it was read (`object_head.py`); otherwise the shipment looks again
at what the store has, and sends what is missing. So every file of a marker that counts is there.

Nothing is listed but by the first `recycle` of a replica, for what others left, and by a restore that finds no head.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path

from understudy.checkpoints.fetching import holds
from understudy.checkpoints.interface import (
    Checkpoint,
    Entry,
    Marker,
    OnDamaged,
    Shipment,
    Shipped,
    ignore_damage,
)
from understudy.checkpoints.object_files import Fetch, Unusable, Upload, in_parallel
from understudy.checkpoints.object_head import Head, Ref
from understudy.checkpoints.object_heads import Heads
from understudy.checkpoints.object_rubbish import Rubbish, Sweep
from understudy.checkpoints.restoring import Restore, new_in, require_essential, set_aside
from understudy.checkpoints.spark_files import files_of, wanted
from understudy.clients.objects import Folder
from understudy.control.replica import retention
from understudy.errors import Away, Unavailable
from understudy.log.disk import Disk
from understudy.model.names import SliceId


@dataclass(frozen=True)
class Pools:
    """The threads of a node that wait for the store: `workers` for files, `looking` for what others have shipped."""

    workers: Executor
    looking: Executor


@dataclass(frozen=True)
class Patience:
    """How long a restore waits for a store that is away, how often others' checkpoints are looked for, and how long
    recycled objects stay."""

    patience_s: float = 120.0
    look_s: float = 0.5
    linger_s: float = 60.0


class ObjectStore:
    """The shipped checkpoints of one slice, for one replica.

    `ship`, `acknowledged` and `recycle` are called by the shipper's thread, to which `_unnamed` and `_rubbish` belong;
    the others by the replica's own.
    """

    def __init__(
        self,
        folder: Folder,
        slice_id: SliceId,
        disk: Disk,
        pools: Pools,
        patience: Patience,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slice = slice_id
        self._folder = folder.below(f"{slice_id.operator}/{slice_id.index}")
        self._disk, self._pools, self._patience, self._clock = disk, pools, patience, clock
        self._heads = Heads(self._folder, pools.looking, patience.look_s)
        self._rubbish = Rubbish(self._folder, patience.linger_s, clock)
        self._unnamed: set[str] = set()
        self._swept = False

    # -- shipping

    def ship(self, checkpoint: Checkpoint | None, epoch: int, generation: int, shipped: Shipped) -> Shipment:
        """Sends what is new in a checkpoint, then its marker, then the head that names it."""
        sent, marks = 0, checkpoint.watermarks if checkpoint else ()
        marker, written, before = Marker(epoch, generation, (), marks), set[str](), -1
        for head in self._heads.attempts():
            if written & {ref.name for ref in head.markers}:
                # An attempt was carried out, and its answer got lost.
                break
            if written and head.number > before + 1:
                # So it may have been, and others may have recycled the checkpoint already.
                self._unnamed.clear()
            before = head.number
            found = self._send_all(checkpoint, head, shipped) if checkpoint else []
            sent += sum(size for _, size in found)
            marker = replace(marker, files=tuple(entry for entry, _ in found))
            ref = self._heads.put_marker(marker, head.sweep)
            written.add(ref.name)
            if self._accepted(head, ref):
                break
        self._unnamed.clear()
        names = {entry.name for entry in marker.files}
        shipped.seen = {name: value for name, value in shipped.seen.items() if name in names}
        return Shipment(sent, sum(entry.size for entry in wanted(marker)))

    def _send_all(self, checkpoint: Checkpoint, head: Head, shipped: Shipped) -> list[tuple[Entry, int]]:
        damaged = self._objects_of(head.aside)
        upload = Upload(self._folder, head.sweep, self._objects_of(head.markers) - damaged, self._unnamed)
        files = files_of(checkpoint, shipped.seen)
        stored = in_parallel(self._pools.workers, lambda path: upload.store(path, checkpoint.directory, shipped), files)
        found = [one for one in stored if one is not None]
        require_essential(self._slice, checkpoint, {entry.name for entry, _ in found})
        return found

    def _accepted(self, head: Head, ref: Ref) -> bool:
        try:
            return self._heads.replace(head, head.with_marker(ref))
        except Away:
            # Perhaps it was carried out: then others may recycle what it names before we look again.
            self._unnamed.clear()
            raise

    def _objects_of(self, refs: Iterable[Ref]) -> set[str]:
        markers = (self._heads.marker(ref) for ref in refs)
        return {entry.stored for marker in markers if marker is not None for entry in marker.files}

    # -- what counts

    def newest(self, *, fresh: bool = False) -> int:
        return (self._heads.fresh() if fresh else self._heads.last_seen()).newest

    def acknowledged(self, released: int) -> int:
        return retention.acknowledgeable(self._heads.fresh().epochs, released)

    def recycle(self, released: int) -> None:
        """Lets checkpoints that nobody needs no longer count; their objects are removed a while later."""
        before, after = self._heads.change(lambda head: _recycled(head, released))
        self._rubbish.add(self._named(before) - self._named(after))
        if not self._swept:
            self._sweep()
        self._rubbish.take_out()

    def _sweep(self) -> None:
        """Others may have ended in the middle of a shipment, or before they removed what they recycled."""
        _, head = self._heads.change(Head.swept)
        self._rubbish.add_sweep(Sweep(head.sweep, frozenset(self._named(head))))
        self._swept = True

    def _named(self, head: Head) -> set[str]:
        return {ref.name for ref in (*head.markers, *head.aside)} | self._objects_of(head.markers)

    # -- fetching

    def restore(
        self,
        local: Path,
        before: int | None,
        on_held: Callable[[Marker], None] = lambda _: None,
        on_damaged: OnDamaged = ignore_damage,
    ) -> tuple[Marker | None, Shipped]:
        """Brings the newest usable checkpoint into an empty local directory; waits for a store that is away."""
        deadline = self._clock() + self._patience.patience_s
        fetch = self._fetch(local)
        try:
            while True:
                try:
                    shelf = ObjectShelf(self._heads, fetch, self._folder.shown, on_held)
                    return Restore(shelf, self._slice, before, on_damaged).run()
                except Away:
                    if self._clock() >= deadline:
                        raise
                    # With jitter: all replicas of a node that died begin to wait at once.
                    threading.Event().wait(random.uniform(0.1, 0.5))
        finally:
            fetch.close()

    def pull(
        self, local: Path, shipped: Shipped, above: int, on_damaged: OnDamaged = ignore_damage
    ) -> tuple[Marker, int] | None:
        """Brings what is new to a directory on which a query waits: state first, offsets and commits when all of it is
        there. If the store is away meanwhile, the query may go on from where it was."""
        ref = next((one for one in self._heads.fresh().markers if one.epoch > above), None)
        if ref is None:
            return None
        marker = self._heads.marker(ref)
        reason = "its marker is damaged" if marker is None else self._pull(marker, local, shipped)
        if marker is None or isinstance(reason, str):
            shelf = ObjectShelf(self._heads, self._fetch(local), self._folder.shown)
            set_aside(shelf.set_aside, ref.title, str(reason), on_damaged)
            return None
        return marker, reason

    def _pull(self, marker: Marker, local: Path, shipped: Shipped) -> int | str:
        """The bytes that were fetched, or what is wrong with the checkpoint."""
        fetch = self._fetch(local)
        state, logs = new_in(marker, local, shipped, holds)
        reason = fetch.all(state, shipped)
        if reason is not None:
            return reason
        try:
            contents = fetch.contents(logs)
        except Unusable as unusable:
            return str(unusable)
        for entry, content in zip(logs, contents, strict=True):
            fetch.put(entry, content, shipped)
        names = {entry.name for entry in marker.files}
        shipped.seen = {name: value for name, value in shipped.seen.items() if name in names}
        return sum(entry.size for entry in (*state, *logs))

    def _fetch(self, local: Path) -> Fetch:
        return Fetch(self._folder, self._disk, self._pools.workers, local)


def _recycled(head: Head, released: int) -> Head:
    return head.keeping(
        retention.kept(head.epochs, released), aside_from=retention.acknowledgeable(head.epochs, released)
    )


@dataclass(frozen=True)
class ObjectShelf:
    """The checkpoints of a slice, for one restore into a local directory."""

    heads: Heads
    fetch: Fetch
    where: str
    on_held: Callable[[Marker], None] = lambda _: None

    def there(self) -> list[tuple[str, Marker | None]]:
        head = self.heads.fresh()
        if not head.number:
            self._require_none()
        return [(ref.title, self.heads.marker(ref)) for ref in head.markers]

    def _require_none(self) -> None:
        """A store without a head is new, unless it has markers: then the head was lost, and with it what counts."""
        found = self.heads.listed()
        if len(found) >= retention.NEWEST:
            raise Unavailable(
                f"the checkpoints of {self.where} cannot be told",
                why=f"head.json, which lists them, is missing, and there are {len(found)} markers",
                fix="put that object back, or run again in a new --home",
            )

    def aside(self) -> list[str]:
        return [ref.title for ref in self.heads.fresh().aside]

    def bring(self, marker: Marker, shipped: Shipped) -> str | None:
        self.on_held(marker)
        reason: str | None = "the store is away"
        try:
            reason = self.fetch.all(wanted(marker), shipped)
        finally:
            if reason is not None:
                self.fetch.put_beside(shipped)
        return reason

    def set_aside(self, name: str) -> bool:
        before, after = self.heads.change(lambda head: head.set_aside(name))
        return before != after
