"""Brings files of a shipped checkpoint to a local directory, and checks each on the way."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from understudy.checkpoints.interface import Entry, Shipped
from understudy.checkpoints.spark_files import PLACE, swap
from understudy.log.disk import Disk


@dataclass(frozen=True)
class Held:
    """Files of a checkpoint that are ours to read, however long that takes, or what kept us from getting them all."""

    folder: Path
    missing: str | None

    def checked(self, entry: Entry) -> bytes | None:
        """The content of a file, if it is what was shipped."""
        content = (self.folder / entry.name).read_bytes()
        return content if len(content) == entry.size and zlib.crc32(content) == entry.crc else None


@dataclass(frozen=True)
class Fetching:
    """`root` is the directory of the slice's checkpoints."""

    root: Path
    disk: Disk

    @contextmanager
    def holding(self, entries: Sequence[Entry], local: Path) -> Iterator[Held]:
        """Gives files a second name, which nobody else removes: large ones may be recycled before they are copied."""
        folder = local.with_name(f"{local.name}-held")
        try:
            gone = (e for e in entries if not self.disk.link(self.root / e.stored, folder / e.name))
            missing = next(gone, None)
            yield Held(folder, f"{missing.stored} is missing" if missing else None)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def copy_all(self, entries: Sequence[Entry], held: Held, local: Path, shipped: Shipped) -> str | None:
        """Brings files up to the first that is damaged; what is wrong with that one."""
        for entry in entries:
            content = held.checked(entry)
            if content is None:
                return f"{entry.stored} is damaged"
            self.put(entry, content, local, shipped)
        return None

    def put(self, entry: Entry, content: bytes, local: Path, shipped: Shipped) -> None:
        target = local / entry.name
        self.disk.replace(target, [swap(entry.name, content, PLACE, str(local))])
        stat = target.stat()
        shipped.seen[entry.name] = (stat.st_mtime_ns, stat.st_size, entry)


def holds(local: Path, shipped: Shipped, entry: Entry) -> bool:
    """Whether a local directory has the file as it was shipped."""
    known = shipped.seen.get(entry.name)
    same = known is not None and (known[2].size, known[2].crc) == (entry.size, entry.crc)
    return same and (local / entry.name).exists()
