"""Shipped checkpoints in memory, and the local ones of queries. A state is a token; a checkpoint has that of its epoch
and the one before, for whoever runs the last batch again."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from understudy.checkpoints.interface import Checkpoint, Marker, Shipment, Shipped
from understudy.control.replica import retention
from understudy.errors import Unavailable
from understudy.model.names import SliceId


@dataclass(frozen=True)
class State:
    """The state after an epoch, and the one before it."""

    epoch: int
    token: int
    before: int


@dataclass
class LocalDisk:
    """The checkpoint directories of a node's queries; gone with the node."""

    states: dict[Path, State] = field(default_factory=dict)


@dataclass
class Kept:
    marker: Marker
    state: State | None
    damaged: bool = False


class SimStore:
    """A `CheckpointStore` of one slice, for every node."""

    def __init__(self, slice_id: SliceId, stateful: bool) -> None:
        self._slice, self._stateful = slice_id, stateful
        self.kept: list[Kept] = []
        self.full: Callable[[], bool] = lambda: False

    def on(self, local: LocalDisk) -> BoundStore:
        return BoundStore(self, local)

    def epochs(self) -> list[int]:
        return [kept.marker.epoch for kept in self.kept]

    def add(self, marker: Marker, state: State | None) -> None:
        self.kept = sorted([*self.kept, Kept(marker, state)], key=lambda k: -k.marker.epoch)

    def recycle(self, released: int) -> None:
        keep = retention.kept(self.epochs(), released)
        self.kept = [kept for number, kept in enumerate(self.kept) if number in keep]

    def restore(self, before: int | None) -> Kept | None:
        usable = [kept for kept in self.kept if before is None or kept.marker.epoch < before]
        found = next((kept for kept in usable if not kept.damaged), None)
        if found is None and any(kept.damaged for kept in self.kept) and len(self.kept) >= retention.NEWEST:
            raise Unavailable(f"no shipped checkpoint of {self._slice} can be read", why="damaged", fix="none")
        return found

    def damage_newest(self) -> bool:
        if self.kept and self._stateful:
            self.kept[0].damaged = True
        return bool(self.kept)

    def lose_power(self, rng: random.Random) -> None:
        """Markers are written durably: nothing is lost."""


@dataclass
class BoundStore:
    """The store as a node sees it."""

    store: SimStore
    local: LocalDisk

    def ship(self, checkpoint: Checkpoint | None, epoch: int, generation: int, shipped: Shipped) -> Shipment:
        if self.store.full():
            raise OSError(28, "No space left on device")
        state = None
        if checkpoint is not None:
            state = self.local.states.get(checkpoint.directory)
            if state is None or state.epoch != epoch:
                raise Unavailable("the checkpoint vanished while it was shipped", why="the query went on", fix="none")
        self.store.add(Marker(epoch, generation, ()), state)
        return Shipment(10, 10)

    def newest(self) -> int:
        return self.store.kept[0].marker.epoch if self.store.kept else -1

    def acknowledged(self, released: int) -> int:
        return retention.acknowledgeable(self.store.epochs(), released)

    def restore(
        self, local: Path, before: int | None, on_held: Callable[[Marker], None] = lambda _: None
    ) -> tuple[Marker | None, Shipped]:
        found = self.store.restore(before)
        if found is None:
            return None, Shipped()
        on_held(found.marker)
        if found.state is not None:
            self.local.states[local] = found.state
        return found.marker, Shipped()

    def pull(self, local: Path, held: Shipped, above: int) -> tuple[Marker, int] | None:
        found = next((kept for kept in self.store.kept if kept.marker.epoch > above), None)
        if found is None or found.damaged:
            return None
        if found.state is not None:
            self.local.states[local] = found.state
        return found.marker, 10

    def recycle(self, released: int) -> None:
        self.store.recycle(released)
