"""The log in memory: put-if-absent bags that can be damaged, and a disk that forgets what was not synced."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.simulated.scheduler import Actor, Scheduler
from understudy.log.bag import DamagedBag, Header
from understudy.log.interface import Published
from understudy.model.names import SliceId

NOWHERE = Path("bag")


@dataclass
class SimBag:
    """As much of a bag as replicas look at. `token` stands for its rows."""

    header: Header
    token: int
    size: int = 100
    durable: bool = False
    damaged: bool = False
    path: Path = NOWHERE


def make_bag(slice_id: SliceId, epoch: int, token: int, lost: tuple[str, ...] = (), rows: int = 1) -> SimBag:
    return SimBag(Header(slice_id, epoch, rows=rows, digest=str(token), sections={}, lost=lost), token)


@dataclass
class SliceLog:
    """What the log holds of one slice."""

    bags: dict[int, SimBag] = field(default_factory=dict)
    newest: int = -1
    acks: dict[SliceId, int] = field(default_factory=dict)
    durable_acks: dict[SliceId, int] = field(default_factory=dict)
    cuts: dict[int, Any] = field(default_factory=dict)
    reached: int = -1
    fenced: int = 0
    bookmarks: dict[int, Any] = field(default_factory=dict)


class SimLog:
    """A `Log`. Waiting is the caller's: nobody waits inside a step of the simulation.

    `full` makes every write fail. `conflicts` collects bags that were published with two contents, `first_cuts` where
    the epochs of live sources ended when they were cut for the first time. `most` is how many bags of one slice there
    were at once.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._waiting: dict[SliceId, list[Actor]] = {}
        self._slices: defaultdict[SliceId, SliceLog] = defaultdict(SliceLog)
        self.of: Callable[[SliceId], SliceLog] = self._slices.__getitem__
        self.full: Callable[[], bool] = lambda: False
        self.conflicts: list[tuple[SliceId, int]] = []
        self.most = 0
        self.first_cuts: dict[tuple[str, int], int] = {}

    def _write(self) -> None:
        if self.full():
            raise OSError(28, "No space left on device")

    def publish(self, bag: Any, *, durable: bool, generation: int | None = None) -> Published:
        self._write()
        slice_id, epoch = bag.header.slice, bag.header.epoch
        own = self.of(slice_id)
        there = own.bags.get(epoch)
        if there is not None and there.damaged:
            there = None
        if there is None:
            bag.durable = durable
            own.bags[epoch] = bag
            self.most = max(self.most, len(own.bags))
            own.newest = max(own.newest, epoch)
            for actor in self._waiting.pop(slice_id, ()):
                actor.wake()
            return Published(True, bag)
        if there.header.digest != bag.header.digest and not there.header.lost:
            self.conflicts.append((slice_id, epoch))
        return Published(False, there)  # type: ignore[arg-type]

    def fetch(self, slice_id: SliceId, epoch: int) -> Any:
        found = self.of(slice_id).bags.get(epoch)
        if found is not None and found.damaged:
            raise DamagedBag(NOWHERE, f"{slice_id} epoch {epoch}")
        return found

    def await_bags(self, slices: Sequence[SliceId], epoch: int, timeout_s: float) -> bool:
        for slice_id in slices:
            if epoch not in self._slices[slice_id].bags:
                actor = self._scheduler.current
                if timeout_s > 0 and actor is not None:
                    self._waiting.setdefault(slice_id, []).append(actor)
                return False
        return True

    def newest(self, slice_id: SliceId) -> int:
        return self.of(slice_id).newest

    def reach(self, reader: SliceId, epoch: int) -> None:
        self.of(reader).reached = epoch

    def reached(self, reader: SliceId) -> int:
        return self.of(reader).reached

    def acknowledged(self, reader: SliceId, upstream: SliceId) -> int:
        return self.of(upstream).acks.get(reader, -1)

    def first_missing(self, slice_id: SliceId, above: int = -1) -> int:
        bags = self.of(slice_id).bags
        expected = max(min(bags, default=0), above + 1)
        while expected in bags:
            expected += 1
        return expected

    def settle(self, slice_id: SliceId, epoch: int) -> None:
        self._write()
        for number, bag in self.of(slice_id).bags.items():
            bag.durable = bag.durable or number <= epoch

    def acknowledge(self, reader: SliceId, upstream: SliceId, epoch: int) -> None:
        acks = self.of(upstream).acks
        acks[reader] = max(epoch, acks.get(reader, -1))

    def floor(self, slice_id: SliceId, readers: Sequence[SliceId]) -> int:
        own = self.of(slice_id)
        return min((own.acks.get(reader, -1) for reader in readers), default=own.newest)

    def trim(self, slice_id: SliceId, readers: Sequence[SliceId]) -> int:
        own, floor = self.of(slice_id), self.floor(slice_id, readers)
        done = [epoch for epoch in own.bags if epoch <= floor and epoch < own.newest]
        if done:
            own.durable_acks = dict(own.acks)
        for epoch in done:
            del own.bags[epoch]
        return max(done, default=-1)

    def damaged(self, slice_id: SliceId, first: int) -> list[int]:
        return sorted(epoch for epoch, bag in self.of(slice_id).bags.items() if epoch >= first and bag.damaged)

    def set_aside(self, slice_id: SliceId, epoch: int) -> None:
        own = self.of(slice_id)
        if epoch in own.bags and own.bags[epoch].damaged:
            del own.bags[epoch]
            own.newest = max(own.bags, default=-1)

    def fence(self, slice_id: SliceId, generation: int) -> None:
        self.of(slice_id).fenced = max(self.of(slice_id).fenced, generation)

    def fenced(self, slice_id: SliceId) -> int:
        return self.of(slice_id).fenced

    def record(self, slice_id: SliceId, epoch: int, value: Any) -> Any:
        self._write()
        self.first_cuts.setdefault((slice_id.operator, epoch), value)
        return self.of(slice_id).cuts.setdefault(epoch, value)

    def recorded(self, slice_id: SliceId, epoch: int) -> Any:
        return self.of(slice_id).cuts.get(epoch)

    def cuts(self, slice_id: SliceId) -> range:
        cuts = self.of(slice_id).cuts
        return range(min(cuts), max(cuts) + 1) if cuts else range(0)

    def trim_cuts(self, slice_id: SliceId, readers: Mapping[SliceId, Sequence[SliceId]]) -> None:
        cuts = self.of(slice_id).cuts
        below = min([*(self.floor(each, own) for each, own in readers.items()), max(cuts, default=0)])
        for epoch in [epoch for epoch in cuts if epoch < below]:
            del cuts[epoch]

    def mark(self, slice_id: SliceId, epoch: int, bookmark: Any) -> None:
        self.of(slice_id).bookmarks[epoch] = bookmark

    def bookmark(self, slice_id: SliceId, epoch: int) -> Any:
        marks = self.of(slice_id).bookmarks
        return marks.get(max((number for number in marks if number <= epoch), default=-1))

    def close(self) -> None:
        """Nothing is held open."""

    # -- what can happen to a disk

    def damage(self, slice_id: SliceId, back: int = 0) -> bool:
        """A bag goes bad, so many before the newest, if there is one."""
        there = sorted(self.of(slice_id).bags, reverse=True)
        if there:
            self.of(slice_id).bags[there[min(back, len(there) - 1)]].damaged = True
        return bool(there)

    def tear(self, slice_id: SliceId) -> int:
        """Every bag of a slice is torn; returns how many were."""
        bags = self.of(slice_id).bags
        for bag in bags.values():
            bag.damaged = True
        return len(bags)

    def lose_power(self, rng: random.Random) -> None:
        """Everything that was not synced is whole, torn or gone."""
        for own in self._slices.values():
            for epoch, bag in list(own.bags.items()):
                if not bag.durable and rng.random() < 0.7:
                    bag.damaged = True
                    if rng.random() < 0.5:
                        del own.bags[epoch]
            own.newest = max(own.bags, default=-1)
            own.acks = {r: rng.choice((e, own.durable_acks.get(r, -1))) for r, e in own.acks.items()}
            own.reached = -1
