"""Bags held back: what an active standby has made and its primary has not published yet."""

from __future__ import annotations

from pathlib import Path

from understudy.log import bag
from understudy.log.bag import Bag
from understudy.log.disk import Disk


class Spool:
    """Files in a directory of the node's own. Used by one thread at a time."""

    def __init__(self, directory: Path, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk
        self._digests: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._digests)

    @property
    def epochs(self) -> tuple[int, ...]:
        return tuple(sorted(self._digests))

    def keep(self, made: Bag) -> None:
        self._disk.replace(self._path(made.header.epoch), made.parts)
        self._digests[made.header.epoch] = made.header.digest

    def digest(self, epoch: int) -> str:
        return self._digests[epoch]

    def take(self, epoch: int) -> Bag:
        """A bag as it was kept; it stays until it is dropped."""
        header, start = bag.read_header(self._path(epoch))
        content = self._path(epoch).read_bytes()
        return Bag(header, (content[:start], memoryview(content)[start:]))

    def drop(self, epoch: int) -> None:
        del self._digests[epoch]
        self._path(epoch).unlink(missing_ok=True)

    def _path(self, epoch: int) -> Path:
        return self._directory / f"{epoch:010d}.bag"
