"""Spark checkpoints, copied to the durable store and back.

    checkpoints/<operator>/<slice>/files/<generation>-<epoch>/…   what one shipment added
    checkpoints/<operator>/<slice>/markers/<epoch>-<generation>.json

A marker lists every file a checkpoint needs. It is written last, so only complete checkpoints have one. The two newest
are kept, and a slice acknowledges the older: should the newest turn out to be damaged, the other can still replay.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from understudy.errors import Unavailable
from understudy.log.disk import TEMPORARY, Disk
from understudy.model.names import SliceId

KEPT = 2
PLACE = "<<the checkpoint>>"
"""Stands in stored metadata for the directory of the checkpoint: Spark writes down full paths of state schemas."""


@dataclass(frozen=True)
class Entry:
    """A file of a checkpoint: its name inside, where it is stored, and what it must look like."""

    name: str
    stored: str
    size: int
    crc: int


@dataclass(frozen=True)
class Marker:
    epoch: int
    generation: int
    files: tuple[Entry, ...]


@dataclass(frozen=True)
class Checkpoint:
    """A local checkpoint as of its newest committed batch; later batches may be in the making beside it."""

    directory: Path
    batch: int
    epoch: int


@dataclass
class Shipped:
    """What the store already has of a local checkpoint, by name: the time and size of the file when it was copied."""

    seen: dict[str, tuple[int, int, Entry]] = field(default_factory=dict)


class Store:
    """The shipped checkpoints of one slice."""

    def __init__(self, root: Path, slice_id: SliceId, disk: Disk) -> None:
        self._root = root / slice_id.operator / str(slice_id.index)
        self._slice = slice_id
        self._disk = disk

    def ship(self, checkpoint: Checkpoint | None, epoch: int, generation: int, shipped: Shipped) -> int:
        """Copies what is new in a checkpoint, then writes its marker; answers the bytes copied.

        A slice without state has no checkpoint: its marker says where to go on. The order is Spark's own: metadata and
        state, then offsets, then commits. Spark only removes files no newer batch needs, so one that vanishes while we
        look was not needed.
        """
        copied = 0
        entries: list[Entry] = []
        path_root = checkpoint.directory if checkpoint else self._root
        for path in _files(checkpoint) if checkpoint else ():
            with suppress(FileNotFoundError):
                entry, size = self._store(path, path_root, f"{generation}-{epoch}", shipped)
                entries.append(entry)
                copied += size
        marker = Marker(epoch, generation, tuple(entries))
        self._disk.replace(self._marker(marker), [json.dumps(asdict(marker)).encode()], durable=True)
        shipped.seen = {name: value for name, value in shipped.seen.items() if name in {e.name for e in entries}}
        return copied

    def _store(self, path: Path, local: Path, folder: str, shipped: Shipped) -> tuple[Entry, int]:
        name = path.relative_to(local).as_posix()
        stat = path.stat()
        known = shipped.seen.get(name)
        if known is not None and known[:2] == (stat.st_mtime_ns, stat.st_size):
            return known[2], 0
        content = _swap(name, path.read_bytes(), str(local), PLACE)
        stored = f"files/{folder}/{name}"
        self._disk.replace(self._root / stored, [content], durable=True)
        entry = Entry(name, stored, len(content), zlib.crc32(content))
        shipped.seen[name] = (stat.st_mtime_ns, stat.st_size, entry)
        return entry, len(content)

    def acknowledged(self) -> int:
        """The epoch up to which this slice never needs its input again."""
        kept = self.markers()[:KEPT]
        return min(marker.epoch for marker in kept) if len(kept) == KEPT else -1

    def markers(self) -> list[Marker]:
        """The complete checkpoints, newest first; a replica that was given up may still ship, but never overtakes."""
        found = []
        for path in (self._root / "markers").glob("*.json"):
            with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
                fields = json.loads(path.read_bytes())
                files = tuple(Entry(**entry) for entry in fields["files"])
                found.append(Marker(fields["epoch"], fields["generation"], files))
        return sorted(found, key=lambda marker: (marker.generation, marker.epoch), reverse=True)

    def restore(self, local: Path, before: int | None) -> tuple[Marker | None, Shipped]:
        """Brings the newest usable checkpoint (of an epoch below `before`) into an empty local directory.

        A damaged one is passed over for the one before it. None means: start from the first epoch, which is possible
        as long as nothing was acknowledged.
        """
        damage: list[str] = []
        for marker in self.markers():
            if before is not None and marker.epoch >= before:
                continue
            shipped = Shipped()
            reason = self._bring(marker, local, shipped)
            if reason is None:
                return marker, shipped
            damage.append(f"epoch {marker.epoch}: {reason}")
        if damage and self.acknowledged() >= 0:
            raise Unavailable(
                f"no shipped checkpoint of {self._slice} can be read",
                why="; ".join(damage),
                fix=f"put the files back under {self._root}, or run again in a new --home",
            )
        return None, Shipped()

    def _bring(self, marker: Marker, local: Path, shipped: Shipped) -> str | None:
        for entry in marker.files:
            try:
                content = (self._root / entry.stored).read_bytes()
            except FileNotFoundError:
                return f"{entry.stored} is missing"
            if len(content) != entry.size or zlib.crc32(content) != entry.crc:
                return f"{entry.stored} is damaged"
            target = local / entry.name
            self._disk.replace(target, [_swap(entry.name, content, PLACE, str(local))])
            stat = target.stat()
            shipped.seen[entry.name] = (stat.st_mtime_ns, stat.st_size, entry)
        return None

    def recycle(self) -> None:
        """Removes all but the two newest checkpoints: their markers first, then files no kept marker names."""
        markers = self.markers()
        kept, old = markers[:KEPT], markers[KEPT:]
        for marker in old:
            self._marker(marker).unlink(missing_ok=True)
        if len(kept) < KEPT:
            return
        needed = {entry.stored for marker in kept for entry in marker.files}
        for folder in self._folders(below=min(marker.epoch for marker in kept)):
            _remove_files(folder, keep={self._root / stored for stored in needed})

    def _folders(self, below: int) -> Iterator[Path]:
        """Shipments older than the kept ones; a newer one may still be in the making, without its marker."""
        for folder in (self._root / "files").glob("*-*"):
            if int(folder.name.rpartition("-")[2]) < below:
                yield folder

    def _marker(self, marker: Marker) -> Path:
        return self._root / "markers" / f"{marker.epoch:010d}-{marker.generation}.json"


def committed(directory: Path) -> Checkpoint | None:
    """The checkpoint as of the last batch Spark committed. Batch numbers are not epochs: the offset is."""
    batch = max(_numbered(directory / "commits"), default=None)
    if batch is None:
        return None
    epoch = int((directory / "offsets" / str(batch)).read_text().splitlines()[-1])
    return Checkpoint(directory, batch, epoch)


def _files(checkpoint: Checkpoint) -> Iterable[Path]:
    local = checkpoint.directory
    state = [path for path in sorted((local / "state").rglob("*")) if _finished(path)]
    offsets, commits = (
        [local / kind / str(batch) for batch in sorted(_numbered(local / kind)) if batch <= checkpoint.batch]
        for kind in ("offsets", "commits")
    )
    return [local / "metadata", *state, *offsets, *commits]


def _swap(name: str, content: bytes, old: str, new: str) -> bytes:
    return content.replace(old.encode(), new.encode()) if "/_metadata/" in name else content


def _numbered(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    return [int(path.name) for path in directory.iterdir() if path.name.isdigit()]


def _finished(path: Path) -> bool:
    return path.is_file() and not path.name.startswith((".", TEMPORARY)) and not path.name.endswith(".tmp")


def _remove_files(folder: Path, keep: set[Path]) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            with suppress(OSError):
                path.rmdir()
        elif path not in keep:
            path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
