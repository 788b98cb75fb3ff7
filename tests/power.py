"""A disk that forgets what was not synced.

The files of a test are the page cache: what programs see. Beside them stands what the disk would hold: the content of a
file as it was at its last sync, and the names in a directory as they were at that directory's last sync. A power cut
builds a new directory from that. What was not synced may have reached the disk all the same, whole or torn, in any
order; a `Fate` says which.
"""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from understudy.log.disk import Disk


class PowerCut(BaseException):
    """Nothing of ours catches it."""


@dataclass(frozen=True)
class Fate:
    """What becomes of something that was not synced: `name` answers for a directory's entry, `content` for a file's."""

    name: Callable[[], bool]
    content: Callable[[bytes, bytes], bytes]


def forgotten() -> Fate:
    """The strict disk: nothing survives that was not synced."""
    return Fate(lambda: False, lambda durable, _: durable)


def torn() -> Fate:
    """Names survive, contents do not: files of the right name that are empty or end too early."""
    return Fate(lambda: True, lambda durable, present: durable or present[: len(present) // 2])


def kept() -> Fate:
    """Everything survives: the same as killing all processes."""
    return Fate(lambda: True, lambda _, present: present)


def random_fate(seed: int) -> Fate:
    chance = random.Random(seed)
    return Fate(
        lambda: chance.random() < 0.5,
        lambda durable, present: chance.choice([durable, present, present[: chance.randint(0, len(present))]]),
    )


Image = dict[str, bytes | None]
"""Files by path, with their contents; None for a directory. Directories come before what is in them."""


def write(image: Image, into: Path) -> None:
    for path, content in image.items():
        if content is None:
            Path(f"{into}{path}").mkdir()
        else:
            Path(f"{into}{path}").write_bytes(content)


@dataclass
class Platter:
    """What the disk holds, by inode. An inode that was seen stays open, so that its number is not used again."""

    contents: dict[int, bytes] = field(default_factory=dict)
    names: dict[int, dict[str, int]] = field(default_factory=dict)
    _open: dict[int, int] = field(default_factory=dict)

    def close(self) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def flush(self, descriptor: int) -> None:
        inode = self._see(f"/proc/self/fd/{descriptor}")
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            self.names[inode] = self._look(inode)
        else:
            self.contents[inode] = self._read(inode)

    def format(self, root: Path) -> None:
        """Everything that is there now is durable."""
        for parent, _, files in os.walk(root):
            inode = self._see(parent)
            self.names[inode] = self._look(inode)
            for name in files:
                file = self._see(f"{parent}/{name}")
                self.contents[file] = self._read(file)

    def left(self, root: Path, fate: Fate) -> Image:
        """What a power cut leaves below a directory, which itself was there before everything."""
        image: Image = {}
        self._collect(self._see(root), "", fate, image)
        return image

    def _collect(self, inode: int, path: str, fate: Fate, image: Image) -> None:
        if not stat.S_ISDIR(os.fstat(self._open[inode]).st_mode):
            durable, present = self.contents.get(inode, b""), self._read(inode)
            image[path] = durable if durable == present else fate.content(durable, present)
            return
        image[path] = None
        names, seen = self.names.get(inode, {}), self._look(inode)
        for name in sorted(names.keys() | seen.keys()):
            survives = names.get(name)
            if survives != seen.get(name) and fate.name():
                survives = seen.get(name)
            if survives is not None:
                self._collect(survives, f"{path}/{name}", fate, image)

    def _see(self, path: str | Path) -> int:
        descriptor = os.open(path, os.O_PATH)
        inode = os.fstat(descriptor).st_ino
        if inode in self._open:
            os.close(descriptor)
        else:
            self._open[inode] = descriptor
        return inode

    def _look(self, inode: int) -> dict[str, int]:
        """The names a program sees in a directory now; none if the directory itself is gone."""
        place = f"/proc/self/fd/{self._open[inode]}"
        return {name: self._see(f"{place}/{name}") for name in os.listdir(place)}  # noqa: PTH208 - names are wanted

    def _read(self, inode: int) -> bytes:
        return Path(f"/proc/self/fd/{self._open[inode]}").read_bytes()


@dataclass(frozen=True)
class PowerDisk(Disk):
    """`on_step` hears of every sync too."""

    platter: Platter = field(default_factory=Platter)

    def flush(self, descriptor: int) -> None:
        self.on_step("flush")
        self.platter.flush(descriptor)
        self.on_step("flushed")


def powered(root: Path, on_step: Callable[[], None]) -> PowerDisk:
    """A disk whose present content is durable; `on_step` is called before and after everything that may change it."""
    root.mkdir(exist_ok=True)
    disk = PowerDisk(on_step=lambda _: on_step())
    disk.platter.format(root)
    # The test's own directories are none of the program's business.
    disk._anchored.update([root, *root.parents])
    return disk
