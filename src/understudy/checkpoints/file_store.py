"""Spark checkpoints, copied to the durable store and back.

    checkpoints/<operator>/<slice>/files/<generation>-<epoch>/…   a whole checkpoint; unchanged files are links
    checkpoints/<operator>/<slice>/markers/<epoch>-<generation>.json
    checkpoints/<operator>/<slice>/damaged/<epoch>-<generation>.json   markers of checkpoints that were found damaged

A marker lists every file a checkpoint needs. It is written last, so only complete checkpoints have one. The two newest
are kept: should a file that only the newest has turn out to be damaged, a successor starts from the other one.
`control/replica/retention.py` says which older one is kept as well, so that bags that still have readers can be made
again, and what may be acknowledged. A checkpoint that a restore or a pull has found damaged no longer counts
(`markers.py`).

An unchanged file is one copy on the disk under several names. If it is damaged, so are all checkpoints that have it:
then a successor starts from an older one that does not, as the base may be, or the run ends with an error that names
the file. Two copies of every file would protect from that; each would be shipped and stored twice.

A marker names files of its own folder only, and only folders older than the two newest markers are ever removed. So
whatever a zombie ships or recycles, no file of the two newest markers is missing.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from understudy.checkpoints.fetching import Fetching, holds
from understudy.checkpoints.interface import (
    Checkpoint,
    Entry,
    Marker,
    OnDamaged,
    Shipment,
    Shipped,
    ignore_damage,
)
from understudy.checkpoints.markers import Markers
from understudy.checkpoints.place import URL, CheckpointsPlace
from understudy.checkpoints.restoring import Restore, new_in, require_essential, set_aside
from understudy.checkpoints.spark_files import (
    CHANGES,
    PLACE,
    files_of,
    swap,
    wanted,
)
from understudy.control.replica import retention
from understudy.errors import InvalidInput
from understudy.log.disk import Disk, walk
from understudy.model.address import Address
from understudy.model.names import SliceId


class Store:
    """The shipped checkpoints of one slice."""

    def __init__(self, root: Path, slice_id: SliceId, disk: Disk) -> None:
        self._root = root / slice_id.operator / str(slice_id.index)
        self._slice = slice_id
        self._disk = disk
        self._markers = Markers(self._root, disk)
        self._fetching = Fetching(self._root, disk)

    def ship(self, checkpoint: Checkpoint | None, epoch: int, generation: int, shipped: Shipped) -> Shipment:
        """Copies what is new in a checkpoint, then writes its marker.

        A slice without state has no checkpoint: its marker says where to go on. The order is Spark's own: metadata and
        state, then offsets, then commits. Spark only removes files no newer batch needs, so one that vanishes while we
        look was not needed.
        """
        self._forget_damaged(shipped)
        found = self._store_all(checkpoint, f"{generation}-{epoch}", shipped) if checkpoint else []
        marks = checkpoint.watermarks if checkpoint else ()
        marker = Marker(epoch, generation, tuple(entry for entry, _ in found), marks)
        self._disk.sync_tree(self._root, [self._root / entry.stored for entry in marker.files])
        self._markers.write(marker)
        names = {entry.name for entry in marker.files}
        shipped.seen = {name: value for name, value in shipped.seen.items() if name in names}
        return Shipment(sum(copied for _, copied in found), sum(entry.size for entry in wanted(marker)))

    def _forget_damaged(self, shipped: Shipped) -> None:
        """Lets files be copied anew instead of linking those of a damaged checkpoint; the local ones may be whole."""
        damaged = self._markers.damaged_folders()
        if damaged:
            known = shipped.seen.items()
            shipped.seen = {name: value for name, value in known if Path(value[2].stored).parts[1] not in damaged}

    def _store_all(self, checkpoint: Checkpoint, folder: str, shipped: Shipped) -> list[tuple[Entry, int]]:
        local = checkpoint.directory
        stored = [self._store(path, local, folder, shipped) for path in files_of(checkpoint, shipped.seen)]
        found = [one for one in stored if one is not None]
        require_essential(self._slice, checkpoint, {entry.name for entry, _ in found})
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

    def newest(self, *, fresh: bool = False) -> int:  # noqa: ARG002
        """The newest epoch whose state was shipped; looking is quick, so it is always fresh."""
        return next((marker.epoch for marker in self.markers()), -1)

    def markers(self) -> list[Marker]:
        """The complete checkpoints, newest first, whoever shipped them; not those that were found damaged."""
        return self._markers.newest_first()

    def restore(
        self,
        local: Path,
        before: int | None,
        on_held: Callable[[Marker], None] = lambda _: None,
        on_damaged: OnDamaged = ignore_damage,
    ) -> tuple[Marker | None, Shipped]:
        """Brings the newest usable checkpoint (of an epoch below `before`) into an empty local directory.

        `on_held` hears which it will be, before its files are copied, which may take a while.

        A damaged one is passed over for the one before it, or for a newer one that was shipped meanwhile. It no longer
        counts afterwards, and `on_damaged` hears of it. If none can be read, all markers stay where they are, so that
        it is enough to put the files back. None means: start from the first epoch, which is possible as long as nothing
        was acknowledged.
        """
        shelf = FileShelf(self._root, self._markers, self._fetching, local, on_held)
        return Restore(shelf, self._slice, before, on_damaged).run()

    def pull(
        self, local: Path, shipped: Shipped, above: int, on_damaged: OnDamaged = ignore_damage
    ) -> tuple[Marker, int] | None:
        """Brings what is new in the newest checkpoint after an epoch to a directory on which a query waits.

        State comes first. Offsets and commits follow only when all of them were read: half of them would keep the query
        from ever writing its own. None, and the query may go on from where it was, if there is nothing newer, if it was
        recycled meanwhile, or if it is damaged, so that it no longer counts; otherwise the marker and the bytes that
        were copied.
        """
        marker = next((m for m in self.markers() if m.epoch > above), None)
        if marker is None:
            return None
        state, logs = new_in(marker, local, shipped, holds)
        with self._fetching.holding([*state, *logs], local) as held:
            reason = held.missing or self._fetching.copy_all(state, held, local, shipped)
            contents = {} if reason else {e: content for e in logs if (content := held.checked(e)) is not None}
        reason = reason or next((f"{entry.stored} is damaged" for entry in logs if entry not in contents), None)
        if reason is not None:
            set_aside(self._markers.set_aside, self._markers.path(marker).name, reason, on_damaged)
            return None
        for entry, content in contents.items():
            self._fetching.put(entry, content, local, shipped)
        names = {entry.name for entry in marker.files}
        shipped.seen = {name: value for name, value in shipped.seen.items() if name in names}
        return marker, sum(entry.size for entry in (*state, *logs))

    def recycle(self, released: int) -> None:
        """Removes checkpoints nobody needs: their markers first, then files no kept marker names."""
        markers = self.markers()
        epochs = [marker.epoch for marker in markers]
        kept = retention.kept(epochs, released)
        self._markers.forget_damaged(below=retention.acknowledgeable(epochs, released))
        for number, marker in enumerate(markers):
            if number not in kept:
                self._markers.remove(marker)
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


@dataclass(frozen=True)
class FileShelf:
    """The checkpoints of a slice, for one restore into a local directory."""

    root: Path
    markers: Markers
    fetching: Fetching
    local: Path
    on_held: Callable[[Marker], None]

    @property
    def where(self) -> str:
        return str(self.root)

    def there(self) -> list[tuple[str, Marker | None]]:
        return list(self.markers.read())

    def aside(self) -> list[str]:
        return self.markers.aside()

    def bring(self, marker: Marker, shipped: Shipped) -> str | None:
        entries = wanted(marker)
        with self.fetching.holding(entries, self.local) as held:
            if held.missing is None:
                self.on_held(marker)
            reason = held.missing or self.fetching.copy_all(entries, held, self.local, shipped)
        if reason is not None:
            shutil.rmtree(self.local, ignore_errors=True)
        return reason

    def set_aside(self, name: str) -> bool:
        return self.markers.set_aside(name)


@dataclass(frozen=True)
class FileCheckpoints:
    """`root` is a directory that all nodes see."""

    root: Path
    disk: Disk

    def of(self, slice_id: SliceId) -> Store:
        return Store(self.root, slice_id, self.disk)

    def close(self) -> None:
        """Nothing is held open."""


def check(address: Address) -> None:
    """Raises if the address of a directory has options or hosts: there are none."""
    address.only(())
    if address.hosts:
        raise InvalidInput(
            f"{URL} is '{address}'",
            why="files have no host: what stands behind '//' is one",
            fix=f"write file:{address.path or '/path'} for a directory, or file: for the home directory",
        )


def root_of(address: Address, home: Path, run: str) -> Path:
    """The directory of a run's checkpoints: in its home, or below the path that the address gives."""
    return Path(address.path).resolve() / run if address.path else home


def open_checkpoints(place: CheckpointsPlace) -> FileCheckpoints:
    check(place.address)
    return FileCheckpoints(root_of(place.address, place.home, place.run), place.disk)


def _remove_files(folder: Path, keep: set[Path]) -> None:
    for path in walk(folder):
        if path not in keep:
            path.unlink(missing_ok=True)
    for directory, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            Path(directory).rmdir()
