"""Spark checkpoints, copied to the durable store and back.

    checkpoints/<operator>/<slice>/files/<generation>-<epoch>/…   a whole checkpoint; unchanged files are links
    checkpoints/<operator>/<slice>/markers/<epoch>-<generation>.json

A marker lists every file a checkpoint needs. It is written last, so only complete checkpoints have one. The two newest
are kept: should the newest turn out to be damaged, the other can still replay. `control/replica/retention.py` says
which older one is kept as well, so that bags that still have readers can be made again, and what may be acknowledged.

A marker names files of its own folder only, and only folders older than the two newest markers are ever removed. So
whatever a zombie ships or recycles, the two newest markers are whole.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from understudy.checkpoints.interface import Checkpoint, Entry, Marker, Shipment, Shipped
from understudy.checkpoints.spark_files import (
    CHANGES,
    PLACE,
    decode,
    encode,
    essential,
    files_of,
    last_batch_in,
    swap,
    wanted,
)
from understudy.control.replica import retention
from understudy.errors import Unavailable
from understudy.log.disk import Disk, walk
from understudy.model.names import SliceId


@dataclass(frozen=True)
class Held:
    """Files of a checkpoint that are ours to read, however long that takes, or what kept us from getting them all."""

    folder: Path
    missing: str | None

    def checked(self, entry: Entry) -> bytes | None:
        """The content of a file, if it is what was shipped."""
        content = (self.folder / entry.name).read_bytes()
        return content if len(content) == entry.size and zlib.crc32(content) == entry.crc else None


class Store:
    """The shipped checkpoints of one slice."""

    def __init__(self, root: Path, slice_id: SliceId, disk: Disk) -> None:
        self._root = root / slice_id.operator / str(slice_id.index)
        self._slice = slice_id
        self._disk = disk

    def ship(self, checkpoint: Checkpoint | None, epoch: int, generation: int, shipped: Shipped) -> Shipment:
        """Copies what is new in a checkpoint, then writes its marker.

        A slice without state has no checkpoint: its marker says where to go on. The order is Spark's own: metadata and
        state, then offsets, then commits. Spark only removes files no newer batch needs, so one that vanishes while we
        look was not needed.
        """
        found = self._store_all(checkpoint, f"{generation}-{epoch}", shipped) if checkpoint else []
        marks = checkpoint.watermarks if checkpoint else ()
        marker = Marker(epoch, generation, tuple(entry for entry, _ in found), marks)
        self._disk.sync_tree(self._root, [self._root / entry.stored for entry in marker.files])
        self._disk.replace(self._marker(marker), [encode(marker)], durable=True)
        names = {entry.name for entry in marker.files}
        shipped.seen = {name: value for name, value in shipped.seen.items() if name in names}
        return Shipment(sum(copied for _, copied in found), sum(entry.size for entry in wanted(marker)))

    def _store_all(self, checkpoint: Checkpoint, folder: str, shipped: Shipped) -> list[tuple[Entry, int]]:
        local = checkpoint.directory
        stored = [self._store(path, local, folder, shipped) for path in files_of(checkpoint, shipped.seen)]
        found = [one for one in stored if one is not None]
        # Were these gone too, then the batch was forgotten or the directory wiped: this is no checkpoint any more.
        missing = essential(checkpoint) - {entry.name for entry, _ in found}
        if missing:
            raise Unavailable(
                f"the checkpoint of {self._slice} vanished while it was shipped",
                why=f"{', '.join(sorted(missing))} is not in {local} any more",
                fix="nothing, if this replica was replaced; otherwise look who removes files there",
            )
        return found

    def _store(self, path: Path, local: Path, folder: str, shipped: Shipped) -> tuple[Entry, int] | None:
        """Copies a file, or links the copy that is there already; None if Spark removed it meanwhile."""
        name = path.relative_to(local).as_posix()
        stored = f"files/{folder}/{name}"
        try:
            stat = path.stat()
            entry = self._reuse(shipped.seen.get(name), (stat.st_mtime_ns, stat.st_size), stored)
            content = swap(name, path.read_bytes(), str(local), PLACE) if entry is None else b""
        except FileNotFoundError:
            return self._carry_on(name, stored, shipped)
        if entry is None:
            entry = Entry(name, stored, len(content), zlib.crc32(content))
            self._disk.replace(self._root / stored, [content])
            self._disk.sync(self._root / stored)
        shipped.seen[name] = (stat.st_mtime_ns, stat.st_size, entry)
        return entry, len(content)

    def _carry_on(self, name: str, stored: str, shipped: Shipped) -> tuple[Entry, int] | None:
        """Changes for which Spark has no use any more stay as long as a standby may have."""
        known = shipped.seen.get(name)
        if known is None or not name.endswith(CHANGES):
            return None
        entry = self._reuse(known, known[:2], stored)
        if entry is None:
            return None
        shipped.seen[name] = (*known[:2], entry)
        return entry, 0

    def _reuse(self, known: tuple[int, int, Entry] | None, now: tuple[int, int], stored: str) -> Entry | None:
        if known is None or known[:2] != now or not self._disk.link(self._root / known[2].stored, self._root / stored):
            return None
        return replace(known[2], stored=stored)

    def acknowledged(self, released: int) -> int:
        """The epoch up to which this slice never needs its input again, if all readers acknowledged `released`."""
        return retention.acknowledgeable([marker.epoch for marker in self.markers()], released)

    def newest(self) -> int:
        """The newest epoch whose state was shipped."""
        return next((marker.epoch for marker in self.markers()), -1)

    def markers(self) -> list[Marker]:
        """The complete checkpoints, newest first, whoever shipped them: two replicas at one epoch have one state."""
        found = [marker for _, marker in self._read_markers() if marker is not None]
        return sorted(found, key=lambda marker: (marker.epoch, marker.generation), reverse=True)

    def _read_markers(self) -> Iterator[tuple[Path, Marker | None]]:
        """Every marker there is, None for one that cannot be read."""
        for path in (self._root / "markers").glob("*.json"):
            with suppress(FileNotFoundError):
                yield path, decode(path.read_bytes())

    def restore(
        self, local: Path, before: int | None, on_held: Callable[[Marker], None] = lambda _: None
    ) -> tuple[Marker | None, Shipped]:
        """Brings the newest usable checkpoint (of an epoch below `before`) into an empty local directory.

        `on_held` hears which it will be, before its files are copied, which may take a while.

        A damaged one is passed over for the one before it, or for a newer one that was shipped meanwhile. None means:
        start from the first epoch, which is possible as long as nothing was acknowledged.
        """
        damage: dict[Marker, str] = {}
        while (marker := self._untried(before, damage)) is not None:
            shipped = Shipped()
            reason = self._bring(marker, local, shipped, on_held)
            if reason is None:
                return marker, shipped
            damage[marker] = f"epoch {marker.epoch}: {reason}"
        read = list(self._read_markers())
        reasons = [*damage.values(), *(f"{path.name} is damaged" for path, marker in read if marker is None)]
        if reasons and len(read) >= retention.NEWEST:
            raise Unavailable(
                f"no shipped checkpoint of {self._slice} can be read",
                why="; ".join(reasons),
                fix=f"put the files back under {self._root}, or run again in a new --home",
            )
        return None, Shipped()

    def _untried(self, before: int | None, tried: Container[Marker]) -> Marker | None:
        usable = (marker for marker in self.markers() if before is None or marker.epoch < before)
        return next((marker for marker in usable if marker not in tried), None)

    def _bring(self, marker: Marker, local: Path, shipped: Shipped, on_held: Callable[[Marker], None]) -> str | None:
        """What is wrong with the checkpoint, if anything is; nothing of it stays here then."""
        entries = wanted(marker)
        with self._holding(entries, local) as held:
            if held.missing is None:
                on_held(marker)
            reasons = (self._copy_one(entry, held, local, shipped) for entry in entries)
            reason = held.missing or next((reason for reason in reasons if reason is not None), None)
        if reason is not None:
            shutil.rmtree(local, ignore_errors=True)
        return reason

    @contextmanager
    def _holding(self, entries: Sequence[Entry], local: Path) -> Iterator[Held]:
        """Gives files a second name, which nobody else removes: large ones may be recycled before they are copied."""
        folder = local.with_name(f"{local.name}-held")
        try:
            gone = (e for e in entries if not self._disk.link(self._root / e.stored, folder / e.name))
            missing = next(gone, None)
            yield Held(folder, f"{missing.stored} is missing" if missing else None)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _copy_one(self, entry: Entry, held: Held, local: Path, shipped: Shipped) -> str | None:
        """Brings one file; what is wrong with it, if anything is."""
        content = held.checked(entry)
        if content is None:
            return f"{entry.stored} is damaged"
        self._put(entry, content, local, shipped)
        return None

    def _put(self, entry: Entry, content: bytes, local: Path, shipped: Shipped) -> None:
        target = local / entry.name
        self._disk.replace(target, [swap(entry.name, content, PLACE, str(local))])
        stat = target.stat()
        shipped.seen[entry.name] = (stat.st_mtime_ns, stat.st_size, entry)

    def pull(self, local: Path, held: Shipped, above: int) -> tuple[Marker, int] | None:
        """Brings what is new in the newest checkpoint after an epoch to a directory on which a query waits.

        State comes first. Offsets and commits follow only when all of them were read: half of them would keep the query
        from ever writing its own. None, and the query may go on from where it was, if there is nothing newer or if it
        was recycled meanwhile; otherwise the marker and the bytes that were copied.
        """
        marker = next((m for m in self.markers() if m.epoch > above), None)
        if marker is None:
            return None
        entries = wanted(marker, since=last_batch_in(held.seen) + 1)
        new = [entry for entry in entries if entry.name != "metadata" and not _holds(local, held, entry)]
        logs = [entry for entry in new if entry.name.startswith(("offsets/", "commits/"))]
        state = [entry for entry in new if entry not in logs]
        with self._holding(new, local) as found:
            if found.missing or any(self._copy_one(entry, found, local, held) is not None for entry in state):
                return None
            contents = [(entry, content) for entry in logs if (content := found.checked(entry)) is not None]
        if len(contents) < len(logs):
            return None
        for entry, content in contents:
            self._put(entry, content, local, held)
        names = {entry.name for entry in marker.files}
        held.seen = {name: value for name, value in held.seen.items() if name in names}
        return marker, sum(entry.size for entry in new)

    def recycle(self, released: int) -> None:
        """Removes checkpoints nobody needs: their markers first, then files no kept marker names."""
        markers = self.markers()
        kept = retention.kept([marker.epoch for marker in markers], released)
        for number, marker in enumerate(markers):
            if number not in kept:
                self._marker(marker).unlink(missing_ok=True)
        if len(markers) < retention.NEWEST:
            return
        needed = {entry.stored for number in kept for entry in markers[number].files}
        for folder in self._folders(below=markers[retention.NEWEST - 1].epoch):
            _remove_files(folder, keep={self._root / stored for stored in needed})

    def _folders(self, below: int) -> Iterator[Path]:
        """Shipments older than the two newest; a newer one may still be in the making, without its marker."""
        for folder in (self._root / "files").glob("*-*"):
            if int(folder.name.rpartition("-")[2]) < below:
                yield folder

    def _marker(self, marker: Marker) -> Path:
        return self._root / "markers" / f"{marker.epoch:010d}-{marker.generation}.json"


def _holds(local: Path, held: Shipped, entry: Entry) -> bool:
    known = held.seen.get(entry.name)
    same = known is not None and (known[2].size, known[2].crc) == (entry.size, entry.crc)
    return same and (local / entry.name).exists()


def _remove_files(folder: Path, keep: set[Path]) -> None:
    for path in walk(folder):
        if path not in keep:
            path.unlink(missing_ok=True)
    for directory, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            Path(directory).rmdir()
