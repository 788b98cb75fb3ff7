"""Shipped checkpoints in memory, and the local ones of queries. A state is a token; a checkpoint has that of its epoch
and the one before, for whoever runs the last batch again."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from understudy.checkpoints.interface import Checkpoint, Marker, OnDamaged, Shipment, Shipped, ignore_damage
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
        self.aside: list[Kept] = []
        """Found damaged: they no longer count."""
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

    def restore(self, before: int | None, on_damaged: OnDamaged) -> Kept | None:
        usable = [kept for kept in self.kept if before is None or kept.marker.epoch < before]
        found = next((kept for kept in usable if not kept.damaged), None)
        damaged = usable if found is None else usable[: usable.index(found)]
        known = len(self.kept) + len(self.aside)
        if found is None and (damaged or not self.kept) and known >= retention.NEWEST:
            raise Unavailable(f"no shipped checkpoint of {self._slice} can be read", why="damaged", fix="none")
        for kept in damaged:
            self.set_aside(kept, on_damaged)
        return found

    def set_aside(self, kept: Kept, on_damaged: OnDamaged) -> None:
        self.kept.remove(kept)
        self.aside.append(kept)
        on_damaged(kept.marker.epoch, "damaged")

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

    def newest(self, *, fresh: bool = False) -> int:
        return self.store.kept[0].marker.epoch if self.store.kept else -1

    def acknowledged(self, released: int) -> int:
        return retention.acknowledgeable(self.store.epochs(), released)

    def restore(
        self,
        local: Path,
        before: int | None,
        on_held: Callable[[Marker], None] = lambda _: None,
        on_damaged: OnDamaged = ignore_damage,
    ) -> tuple[Marker | None, Shipped]:
        found = self.store.restore(before, on_damaged)
        if found is None:
            return None, Shipped()
        on_held(found.marker)
        if found.state is not None:
            self.local.states[local] = found.state
        return found.marker, Shipped()

    def pull(
        self, local: Path, shipped: Shipped, above: int, on_damaged: OnDamaged = ignore_damage
    ) -> tuple[Marker, int] | None:
        found = next((kept for kept in self.store.kept if kept.marker.epoch > above), None)
        if found is None:
            return None
        if found.damaged:
            self.store.set_aside(found, on_damaged)
            return None
        if found.state is not None:
            self.local.states[local] = found.state
        return found.marker, 10

    def recycle(self, released: int) -> None:
        self.store.recycle(released)
