"""The edge of a simulated node: what `stream/edge.py` asks for, in memory."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.simulated.checkpoints import BoundStore, LocalDisk
from tests.simulated.log import SimBag, SimLog, make_bag
from tests.simulated.query import Pace, SimQuery
from tests.simulated.scheduler import Actor, Process, Scheduler, SimSignal
from tests.simulated.tokens import mix
from tests.simulated.world import TokenCopies, World
from understudy.log.bag import DamagedBag
from understudy.log.interface import Log
from understudy.model.layout import Channel
from understudy.model.names import SliceId
from understudy.stream.edge import Delivery, Input, InputDamaged, InputMissing


@dataclass
class SimReader:
    """Reads tokens; a copy of them is as good as the bag."""

    log: Log
    channels: tuple[Channel, ...]

    def read(self, epoch: int) -> Input:
        bags = [(channel, self._stored(channel, epoch)) for channel in self.channels]
        lines = tuple(str(mix(bag.token, channel.part)) for channel, bag in bags)
        return Input(lines, rows=len(lines), size=100 * len(lines), lost=_lost([bag for _, bag in bags]))

    def copy(self, epoch: int, found: Input) -> Input:
        return found

    def discard(self, epoch: int) -> None:
        pass

    def deliver(self, epoch: int) -> Delivery:
        bags = [(channel, self._stored(channel, epoch)) for channel in self.channels]
        token = mix(*(mix(bag.token, channel.part) for channel, bag in bags))
        return Delivery(token, 1, str(token), _lost([bag for _, bag in bags]))

    def _stored(self, channel: Channel, epoch: int) -> SimBag:
        try:
            found: SimBag | None = self.log.fetch(channel.upstream, epoch)  # type: ignore[assignment]
        except DamagedBag as error:
            raise InputDamaged(error, channel.upstream, epoch) from error
        if found is None:
            raise InputMissing(f"{channel.upstream} lost its bag of epoch {epoch}")
        return found


def _lost(bags: list[SimBag]) -> tuple[str, ...]:
    return tuple(sorted({name for bag in bags for name in bag.header.lost}))


@dataclass
class SimSpool:
    held: dict[int, SimBag] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.held)

    @property
    def epochs(self) -> tuple[int, ...]:
        return tuple(sorted(self.held))

    def keep(self, made: Any) -> None:
        self.held[made.header.epoch] = made

    def digest(self, epoch: int) -> str:
        return self.held[epoch].header.digest

    def take(self, epoch: int) -> Any:
        return self.held[epoch]

    def drop(self, epoch: int) -> None:
        del self.held[epoch]


class SimEdge:
    """One for every node. `python` and `jvm` are its two halves: each can be frozen alone."""

    def __init__(self, world: World, scheduler: Scheduler, python: Process, jvm: Process, pace: Pace) -> None:
        self._world, self._scheduler = world, scheduler
        self._python, self._jvm = python, jvm
        self.pace = pace
        self.disk = LocalDisk()
        self.queries: list[SimQuery] = []
        self._log: Log = world.log

    def query(
        self,
        slice_id: SliceId,
        name: str,
        directory: Path,
        batch: Callable[[int, Any], None],
        ended: Callable[[BaseException | None], None],
    ) -> SimQuery:
        vertex = self._world.layout[slice_id.operator]
        made = SimQuery(
            self._scheduler,
            self._jvm,
            self.disk,
            lambda: self.pace,
            slice_id,
            vertex.stateful,
            name,
            directory,
            batch,
            ended,
            None if vertex.deterministic else self._world.chance,
        )
        self.queries = [query for query in self.queries if not query.stopped] + [made]
        return made

    def store(self, slice_id: SliceId) -> BoundStore:
        return self._world.stores[slice_id].on(self.disk)

    def reader(self, slice_id: SliceId, directory: Path) -> SimReader:
        return SimReader(self._log, self._world.layout.channels(slice_id))

    def spool(self, directory: Path) -> SimSpool:
        return SimSpool()

    def bag(self, slice_id: SliceId, epoch: int, rows: int, lost: tuple[str, ...] = ()) -> Any:
        return make_bag(slice_id, epoch, rows, lost, self._world.count(slice_id, epoch))

    def empty(self, operator: str) -> int:
        return 0

    def signal(self) -> SimSignal:
        return SimSignal()

    def spawn(self, name: str, turn: Callable[[], float | None], signal: Any) -> Callable[[], None]:
        Actor(self._scheduler, self._python, turn, signal)
        return lambda: None

    def branch_log(self, number: int) -> SimLog:
        return self._world.branches.setdefault(number, SimLog(self._scheduler))

    def drop_branch(self, number: int) -> None:
        self._world.branches.pop(number, None)

    def over(self, log: Log) -> SimEdge:
        other = copy.copy(self)
        other._log = log
        return other

    def copies(self, sink: str) -> TokenCopies:
        return TokenCopies(self._world.copies.setdefault(sink, {}))

    def remove(self, directory: Path) -> None:
        for path in [path for path in self.disk.states if directory in path.parents]:
            del self.disk.states[path]
