"""Files of checkpoints as objects that are named by their content.

    files/<sweep>/<sha256>-<token>

The checksum in the name tells what must be inside. An unchanged file is one object, however many checkpoints have it.
The token makes every upload an object of its own: a name that was removed never comes back, so a removal that a frozen
process makes late removes nothing that is needed again. `object_head.py` says what the sweep is for.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import IO, TypeVar

from understudy.checkpoints.interface import Entry, Shipped
from understudy.checkpoints.spark_files import CHANGES, PLACE, has_places, swap
from understudy.clients.objects import Folder
from understudy.log.disk import Disk

T = TypeVar("T")
R = TypeVar("R")

FILES = "files"
_BLOCK = 1 << 20


class Unusable(Exception):
    """An object is missing, or is not what was shipped."""


def in_parallel(workers: Executor, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """The results in order. If one raises, so does this, when nothing of it is under way any more."""
    under_way = [workers.submit(work, item) for item in items]
    try:
        return [one.result() for one in under_way]
    finally:
        for one in under_way:
            one.cancel()
        wait(under_way)


# -- to the store


@dataclass
class Upload:
    """One shipment: which files are there already, and which are new. Belongs to the shipper's thread.

    `named` are the objects that checkpoints of the head have, without those of damaged ones. `unnamed` are objects that
    this replica has written and no head has ever named.
    """

    folder: Folder
    sweep: int
    named: Collection[str]
    unnamed: set[str]

    def store(self, path: Path, local: Path, shipped: Shipped) -> tuple[Entry, int] | None:
        """Sends a file unless the store has it; the bytes sent, or None if Spark removed it meanwhile."""
        name = path.relative_to(local).as_posix()
        known = shipped.seen.get(name)
        usable = known is not None and self._usable(known[2].stored)
        try:
            with path.open("rb") as file:
                stat = os.fstat(file.fileno())
                if known is not None and usable and known[:2] == (stat.st_mtime_ns, stat.st_size):
                    return known[2], 0
                entry = self._send(name, file, str(local))
        except FileNotFoundError:
            # Changes for which Spark has no use any more stay as long as a standby may have.
            return (known[2], 0) if known is not None and usable and name.endswith(CHANGES) else None
        shipped.seen[name] = (stat.st_mtime_ns, stat.st_size, entry)
        return entry, entry.size

    def _usable(self, stored: str) -> bool:
        return stored in self.named or (stored in self.unnamed and sweep_of(stored) == self.sweep)

    def _send(self, name: str, file: IO[bytes], local: str) -> Entry:
        source = BytesIO(swap(name, file.read(), local, PLACE)) if has_places(name) else file
        size, crc, digest = _digest(source)
        stored = f"{FILES}/{self.sweep}/{digest}-{secrets.token_hex(4)}"
        source.seek(0)
        self.folder.put(stored, source, size)
        self.unnamed.add(stored)
        return Entry(name, stored, size, crc)


def _digest(file: IO[bytes]) -> tuple[int, int, str]:
    size, crc, digest = 0, 0, hashlib.sha256()
    while block := file.read(_BLOCK):
        size, crc = size + len(block), zlib.crc32(block, crc)
        digest.update(block)
    return size, crc, digest.hexdigest()


def sweep_of(name: str) -> int:
    """Under which sweep an object was written."""
    return int(name.split("/")[1])


def sha256_of(stored: str) -> str:
    return stored.rpartition("/")[2].partition("-")[0]


# -- back


@dataclass
class Fetch:
    """Brings files of checkpoints to one local directory, several at a time.

    If one cannot be had, what is there is put beside, and files that another checkpoint shares are taken from there: a
    large state may be recycled while it is fetched, and the newer one shares most of it.
    """

    folder: Folder
    disk: Disk
    workers: Executor
    local: Path
    _spare: dict[str, Path] = field(default_factory=dict)

    def all(self, entries: Sequence[Entry], shipped: Shipped) -> str | None:
        """Brings files; what is wrong with the first that cannot be had."""
        try:
            in_parallel(self.workers, lambda entry: self._bring(entry, shipped), entries)
        except Unusable as unusable:
            return str(unusable)
        return None

    def contents(self, entries: Sequence[Entry]) -> list[bytes]:
        """The contents of small files; raises `Unusable` for the first that cannot be had."""
        return in_parallel(self.workers, self._content, entries)

    def _bring(self, entry: Entry, shipped: Shipped) -> None:
        target, spare = self.local / entry.name, self._spare.get(sha256_of(entry.stored))
        if has_places(entry.name):
            self.put(entry, self._content(entry), shipped)
            return
        if spare is None or not self.disk.link(spare, target):
            self.disk.replace(target, self._verified(entry))
        _note(entry, target, shipped)

    def _content(self, entry: Entry) -> bytes:
        return b"".join(self._verified(entry))

    def put(self, entry: Entry, content: bytes, shipped: Shipped) -> None:
        target = self.local / entry.name
        self.disk.replace(target, [swap(entry.name, content, PLACE, str(self.local))])
        _note(entry, target, shipped)

    def _verified(self, entry: Entry) -> Iterator[bytes]:
        """The pieces of an object; raises after the last one if they are not what was shipped."""
        digest = hashlib.sha256()
        try:
            for piece in self.folder.pieces(entry.stored, entry.size):
                digest.update(piece)
                yield piece
        except FileNotFoundError:
            raise Unusable(f"{entry.stored} ({entry.name}) is missing") from None
        if digest.hexdigest() != sha256_of(entry.stored):
            raise Unusable(f"{entry.stored} ({entry.name}) is damaged")

    def put_beside(self, shipped: Shipped) -> None:
        """Empties the directory, and remembers the files in it, each of which was verified."""
        if not self.local.exists():
            return
        beside = self._beside / str(len(list(self._beside.glob("*"))))
        beside.parent.mkdir(parents=True, exist_ok=True)
        self.local.rename(beside)
        for name, (_, _, entry) in shipped.seen.items():
            if not has_places(name):
                self._spare[sha256_of(entry.stored)] = beside / name

    def close(self) -> None:
        shutil.rmtree(self._beside, ignore_errors=True)

    @property
    def _beside(self) -> Path:
        return self.local.with_name(f"{self.local.name}-beside")


def _note(entry: Entry, target: Path, shipped: Shipped) -> None:
    stat = target.stat()
    shipped.seen[entry.name] = (stat.st_mtime_ns, stat.st_size, entry)
