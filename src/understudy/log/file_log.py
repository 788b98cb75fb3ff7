"""Bags as files, on a local or mounted file system.

log/<operator>/<slice>/0000000012.bag     a bag
log/<operator>/<slice>/acks/<reader>/0000000012   an epoch this reader has acknowledged; the newest counts
log/<operator>/<slice>/cuts/0000000012    where the epoch of a live source ends
log/<sink>/<slice>/reached                the newest epoch a sink has written
log/<operator>/<slice>/bookmarks/0000000012   from where a source can read an epoch
log/<operator>/<slice>/fences/3           replicas of generations before the third shall be still
log/damaged/                              bags that were set aside
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from understudy.errors import InvalidInput
from understudy.log import bag
from understudy.log.bag import DamagedBag
from understudy.log.disk import Disk
from understudy.log.interface import Published, Stored
from understudy.log.place import LogPlace
from understudy.model.address import Address
from understudy.model.names import SliceId

_POLL_S = 0.01


class FileLog:
    """A publisher in this process wakes the readers beside it at once; other processes are noticed by looking.

    It has as many methods as a `Log` has questions, and one for every place in its directory.
    """

    def __init__(self, root: Path, disk: Disk) -> None:
        self._root = root
        self._disk = disk
        self._published = threading.Condition()
        self._unsettled: dict[SliceId, set[int]] = defaultdict(set)
        self._settled: dict[SliceId, int] = {}
        self._newest: dict[SliceId, int] = {}

    def publish(self, bag: bag.Bag, *, durable: bool, generation: int | None = None) -> Published:  # noqa: ARG002
        slice_id, epoch = bag.header.slice, bag.header.epoch
        path = self._bag(slice_id, epoch)
        first = self._disk.put_if_absent(path, bag.parts, durable=durable)
        try:
            there = None if first else self.fetch(slice_id, epoch)
        except DamagedBag:
            # What a power cut left of it; ours takes its place.
            self.set_aside(slice_id, epoch)
            there, first = None, self._disk.put_if_absent(path, bag.parts, durable=durable)
        if not durable:
            # Also for a bag that was there: its writer may not have lived to settle it.
            self._unsettled[slice_id].add(epoch)
        with self._published:
            self._published.notify_all()
        own = Stored(bag.header, path, bag.start)
        # One that was there may be trimmed by now: then all readers have it, and ours is as good.
        return Published(first, there or own)

    def fetch(self, slice_id: SliceId, epoch: int) -> Stored | None:
        path = self._bag(slice_id, epoch)
        try:
            header, start = bag.read_header(path)
        except FileNotFoundError:
            return None
        return Stored(header, path, start)

    def await_bags(self, slices: Sequence[SliceId], epoch: int, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        paths = [self._bag(slice_id, epoch) for slice_id in slices]
        with self._published:
            while not all(path.exists() for path in paths):
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._published.wait(min(left, _POLL_S))
        return True

    def newest(self, slice_id: SliceId) -> int:
        # From what was there at the last look: a directory with many bags takes long to list.
        newest = self._newest.get(slice_id, -1)
        if newest < 0 or not self._bag(slice_id, newest).exists():
            newest = max(self._epochs(slice_id), default=-1)
        while self._bag(slice_id, newest + 1).exists():
            newest += 1
        self._newest[slice_id] = newest
        return newest

    def reach(self, reader: SliceId, epoch: int) -> None:
        if epoch != self.reached(reader):
            self._disk.replace(self._directory(reader) / "reached", [str(epoch).encode()])

    def reached(self, reader: SliceId) -> int:
        try:
            return int((self._directory(reader) / "reached").read_bytes())
        except (FileNotFoundError, ValueError):
            # A power cut may leave the file empty; the sink writes it again when it is back.
            return -1

    def first_missing(self, slice_id: SliceId, above: int = -1) -> int:
        epochs = self._epochs(slice_id)
        expected = max(min(epochs, default=0), above + 1)
        while expected in epochs:
            expected += 1
        return expected

    def settle(self, slice_id: SliceId, epoch: int) -> None:
        # Others' bags too: a replica that takes over goes on from bags whose writer did not live to settle them.
        known = self._settled.get(slice_id, -1)
        others = {number for number in self._epochs(slice_id) if known < number <= epoch}
        # A copy: another thread may publish meanwhile.
        own = {number for number in tuple(self._unsettled[slice_id]) if number <= epoch}
        for number in sorted(own | others):
            with suppress(FileNotFoundError):
                self._disk.sync(self._bag(slice_id, number))
        if own | others:
            self._disk.sync_directory(self._directory(slice_id))
        self._unsettled[slice_id].difference_update(own)
        self._settled[slice_id] = max(known, max(own | others, default=-1))

    def acknowledge(self, reader: SliceId, upstream: SliceId, epoch: int) -> None:
        # A file each, which only appears: replacing one without a sync could lose the older acknowledgement as well.
        if epoch > self.acknowledged(reader, upstream):
            self._disk.put_if_absent(self._acks(reader, upstream) / f"{epoch:010d}", [b""])

    def acknowledged(self, reader: SliceId, upstream: SliceId) -> int:
        return max(_numbers_in(self._acks(reader, upstream)), default=-1)

    def floor(self, slice_id: SliceId, readers: Sequence[SliceId]) -> int:
        acknowledged = [self.acknowledged(reader, slice_id) for reader in readers]
        return min(acknowledged) if acknowledged else self.newest(slice_id)

    def trim(self, slice_id: SliceId, readers: Sequence[SliceId]) -> int:
        newest, floor = self.newest(slice_id), self.floor(slice_id, readers)
        # The newest one stays: `newest` reads the progress of the slice from it.
        done = sorted(epoch for epoch in self._epochs(slice_id) if epoch <= floor and epoch < newest)
        self._settle_acknowledgements(slice_id, readers, needed=bool(done))
        for epoch in done:
            self._bag(slice_id, epoch).unlink(missing_ok=True)
        passed = sorted(epoch for epoch in _numbers_in(self._bookmarks(slice_id)) if epoch <= floor)
        for epoch in passed[:-1]:
            (self._bookmarks(slice_id) / f"{epoch:010d}").unlink(missing_ok=True)
        return done[-1] if done else -1

    def _settle_acknowledgements(self, slice_id: SliceId, readers: Sequence[SliceId], *, needed: bool) -> None:
        """Makes the newest ones durable if anything is removed because of them, or older acknowledgements."""
        for acks in (self._acks(reader, slice_id) for reader in readers):
            there = sorted(_numbers_in(acks))
            if there and (needed or len(there) > 1):
                self._disk.sync_directory(acks)
                for epoch in there[:-1]:
                    (acks / f"{epoch:010d}").unlink(missing_ok=True)

    def damaged(self, slice_id: SliceId, first: int) -> list[int]:
        epochs = sorted(epoch for epoch in self._epochs(slice_id) if epoch >= first)
        # One that is trimmed between two looks is not damaged.
        return [e for e in epochs if not bag.is_whole(self._bag(slice_id, e)) and self._bag(slice_id, e).exists()]

    def set_aside(self, slice_id: SliceId, epoch: int) -> None:
        path = self._bag(slice_id, epoch)
        if bag.is_whole(path):
            return
        aside = self._root / "damaged" / f"{slice_id}-{epoch}-{time.time_ns()}.bag"
        aside.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            path.rename(aside)
        if bag.is_whole(aside):
            # Another replica rebuilt it between our check and our move.
            with suppress(FileExistsError):
                path.hardlink_to(aside)

    def fence(self, slice_id: SliceId, generation: int) -> None:
        self._disk.put_if_absent(self._directory(slice_id) / "fences" / str(generation), [b""], durable=True)

    def fenced(self, slice_id: SliceId) -> int:
        return max(_numbers_in(self._directory(slice_id) / "fences"), default=0)

    def record(self, slice_id: SliceId, epoch: int, value: Any) -> Any:
        self._disk.put_if_absent(self._cut(slice_id, epoch), [json.dumps(value).encode()], durable=True)
        return self.recorded(slice_id, epoch)

    def recorded(self, slice_id: SliceId, epoch: int) -> Any:
        try:
            return json.loads(self._cut(slice_id, epoch).read_bytes())
        except FileNotFoundError:
            return None

    def cuts(self, slice_id: SliceId) -> range:
        epochs = self._cut_epochs(slice_id)
        newest = max(epochs, default=-1)
        # A power cut may bring a removed cut back. Recording is durable, so whatever lies below a hole was removed.
        oldest = newest
        while oldest - 1 in epochs:
            oldest -= 1
        return range(oldest, newest + 1) if epochs else range(0)

    def trim_cuts(self, slice_id: SliceId, readers: Mapping[SliceId, Sequence[SliceId]]) -> None:
        epochs = self._cut_epochs(slice_id)
        below = min([*(self.floor(each, own) for each, own in readers.items()), max(epochs, default=0)])
        done = sorted(epoch for epoch in epochs if epoch < below)
        if done:
            for each, own in readers.items():
                self._settle_acknowledgements(each, own, needed=True)
        for epoch in done:
            self._cut(slice_id, epoch).unlink(missing_ok=True)

    def mark(self, slice_id: SliceId, epoch: int, bookmark: Any) -> None:
        self._disk.replace(self._bookmarks(slice_id) / f"{epoch:010d}", [json.dumps(bookmark).encode()])

    def bookmark(self, slice_id: SliceId, epoch: int) -> Any:
        for number in sorted(_numbers_in(self._bookmarks(slice_id)), reverse=True):
            # A power cut may leave it empty: then the one before does.
            with suppress(FileNotFoundError, ValueError):
                if number <= epoch:
                    return json.loads((self._bookmarks(slice_id) / f"{number:010d}").read_bytes())
        return None

    def close(self) -> None:
        """Nothing is held open."""

    def _cut_epochs(self, slice_id: SliceId) -> set[int]:
        return _numbers_in(self._cut(slice_id, 0).parent)

    def _directory(self, slice_id: SliceId) -> Path:
        return self._root / slice_id.operator / str(slice_id.index)

    def _bag(self, slice_id: SliceId, epoch: int) -> Path:
        return self._directory(slice_id) / f"{epoch:010d}.bag"

    def _acks(self, reader: SliceId, upstream: SliceId) -> Path:
        return self._directory(upstream) / "acks" / str(reader)

    def _bookmarks(self, slice_id: SliceId) -> Path:
        return self._directory(slice_id) / "bookmarks"

    def _cut(self, slice_id: SliceId, epoch: int) -> Path:
        return self._directory(slice_id) / "cuts" / f"{epoch:010d}"

    def _epochs(self, slice_id: SliceId) -> set[int]:
        directory = self._directory(slice_id)
        if not directory.is_dir():
            return set()
        return {int(path.stem) for path in directory.iterdir() if path.suffix == ".bag" and path.stem.isdigit()}


def check(address: Address) -> None:
    """Raises if a file log's address has options or hosts: there are none."""
    address.only(())
    if address.hosts:
        raise InvalidInput(
            f"log.url is '{address}'",
            why="files have no host: what stands behind '//' is one",
            fix=f"write file:{address.path or '/path'} for a directory, or file: for the home directory",
        )


def root_of(address: Address, home: Path, run: str) -> Path:
    """The directory of a run's bags: in its home, or below the path that the address gives."""
    return Path(address.path).resolve() / run if address.path else home


def open_log(place: LogPlace) -> FileLog:
    check(place.address)
    return FileLog(root_of(place.address, place.home, place.run), place.disk)


def _numbers_in(directory: Path) -> set[int]:
    return {int(path.name) for path in directory.glob("[0-9]*")}
