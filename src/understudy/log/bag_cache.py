"""Bags of a remote log as files of this node: the JVM maps files, and reads a bag by its path.

The log stays the truth. A file that is missing, damaged or was given up for room is read from the log again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from understudy.log.disk import TEMPORARY, Disk
from understudy.model.names import SliceId

logger = logging.getLogger(__name__)

IN_USE_S = 600.0
"""For how long a file is kept after it was handed out, whatever the limit: a query may still read it."""


@dataclass
class _Kept:
    size: int
    handed_out: float | None = None


class BagCache:
    """The owner of the log calls `stage`, `keep`, `give_up` and `drop` from one thread, the rest from any.

    All calls but `stage` and `write` are made under the owner's lock. `limit` is in bytes. Files that were handed out
    within the last ten minutes stay even above it: they are being read, and trimming removes them soon.
    """

    def __init__(self, directory: Path, limit: int, disk: Disk, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory, self._limit, self._disk, self._clock = directory, limit, disk, clock
        self._kept: dict[tuple[SliceId, int], _Kept] = {}
        self.size = 0

    def path(self, slice_id: SliceId, epoch: int) -> Path:
        return self._directory / slice_id.operator / str(slice_id.index) / f"{epoch:010d}.bag"

    # -- bags as they arrive

    def has_room(self, size: int) -> bool:
        """Whether a bag is kept when it arrives. The ones before it will be read sooner, so they stay."""
        return self.size + size <= self._limit

    def stage(self, slice_id: SliceId, epoch: int, writer: str, *, value: bytes, first: bool) -> None:
        """Writes the next piece of a bag that may come to count."""
        path = self._staged(slice_id, epoch, writer)
        try:
            if first:
                path.parent.mkdir(parents=True, exist_ok=True)
            elif not path.exists():
                return
            with path.open("wb" if first else "ab") as file:
                file.write(value)
        except OSError as error:
            # Whoever needs the bag reads it from the log, and says what is wrong with the disk.
            logger.warning("%s epoch %d is not kept on this node: %s", slice_id, epoch, error)
            path.unlink(missing_ok=True)

    def keep(self, slice_id: SliceId, epoch: int, writer: str, size: int) -> None:
        """The bag counts: its file gets its name, if all pieces are in it."""
        path = self._staged(slice_id, epoch, writer)
        try:
            whole = path.stat().st_size == size
        except FileNotFoundError:
            return
        if whole:
            path.replace(self.path(slice_id, epoch))
            self._note(slice_id, epoch, size)
        else:
            path.unlink()

    def give_up(self, slice_id: SliceId, epoch: int, writer: str) -> None:
        """The bag does not count."""
        self._staged(slice_id, epoch, writer).unlink(missing_ok=True)

    def _staged(self, slice_id: SliceId, epoch: int, writer: str) -> Path:
        return self.path(slice_id, epoch).with_name(f"{TEMPORARY}{epoch}-{writer}")

    # -- bags as they are needed

    def hand_out(self, slice_id: SliceId, epoch: int) -> bool:
        """Whether the bag is here; it then stays while it is read."""
        kept = self._kept.get((slice_id, epoch))
        if kept is None:
            return False
        kept.handed_out = self._clock()
        return True

    def write(self, slice_id: SliceId, epoch: int, content: Iterable[bytes]) -> None:
        """Writes a bag that was read from the log again; `note` it afterwards."""
        self._disk.replace(self.path(slice_id, epoch), content)

    def note(self, slice_id: SliceId, epoch: int, size: int) -> None:
        """A bag was written because it is needed now; others make room for it."""
        self._note(slice_id, epoch, size)
        self.hand_out(slice_id, epoch)
        self._make_room()

    def _note(self, slice_id: SliceId, epoch: int, size: int) -> None:
        before = self._kept.pop((slice_id, epoch), None)
        self.size += size - (before.size if before else 0)
        self._kept[slice_id, epoch] = _Kept(size)

    def _make_room(self) -> None:
        """Removes what nobody asked for, the bags that are needed last first; then what was handed out long ago."""
        now = self._clock()
        free = [
            (kept.handed_out is not None, -epoch, slice_id)
            for (slice_id, epoch), kept in self._kept.items()
            if kept.handed_out is None or now - kept.handed_out > IN_USE_S
        ]
        for _, negative, slice_id in sorted(free):
            if self.size <= self._limit:
                return
            self.drop(slice_id, [-negative])

    def drop(self, slice_id: SliceId, epochs: Iterable[int]) -> None:
        """These bags were trimmed, or must be read again."""
        for epoch in epochs:
            kept = self._kept.pop((slice_id, epoch), None)
            if kept is not None:
                self.size -= kept.size
                with suppress(OSError):
                    self.path(slice_id, epoch).unlink()
