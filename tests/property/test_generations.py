"""Several generations ship and recycle side by side, interrupted anywhere: the two newest markers are always whole, and
so is one from which every bag that a reader may still ask for can be made again."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import COUNTS, Crash, crash_at, everything_in
from tests.checkpoints import FakeQuery
from understudy.checkpoints.file_store import Store
from understudy.checkpoints.interface import Marker, Shipped
from understudy.log.disk import Disk


@dataclass
class Replica:
    generation: int
    query: FakeQuery
    shipped: Shipped


@dataclass
class World:
    root: Path
    replicas: list[Replica] = field(default_factory=list)
    contents: dict[tuple[int, int], dict[str, bytes]] = field(default_factory=dict)
    acknowledged: int = -1
    released: int = -1
    """What all readers of the slice have acknowledged."""

    def store(self, disk: Disk | None = None) -> Store:
        return Store(self.root / "store", COUNTS, disk or Disk())

    def take_over(self, keep: int) -> None:
        generation = len(self.replicas) + 1
        local = self.root / f"local-{generation}"
        marker, shipped = self.store().restore(local, None)
        if marker is not None:
            self.compare(everything_in(local), marker)
            assert marker.epoch >= self.acknowledged, "the input from there on may be gone"
        query = FakeQuery(local, marker.epoch if marker else -1, writer=str(generation), keep=keep)
        self.replicas.append(Replica(generation, query, shipped))

    def ship(self, replica: Replica, epochs: int, stop_after: int | None) -> None:
        replica.query.run(epochs)
        checkpoint = replica.query.committed()
        self.contents[checkpoint.epoch, replica.generation] = replica.query.needed()
        store = self.store(None if stop_after is None else crash_at(stop_after))
        try:
            store.ship(checkpoint, checkpoint.epoch, replica.generation, replica.shipped)
            self.acknowledged = max(self.acknowledged, store.acknowledged(self.released))
            store.recycle(self.released)
        except Crash:
            replica.shipped = Shipped()

    def check_all(self) -> None:
        markers = self.store().markers()
        for marker in markers[:2]:
            self.check(marker)
        bases = [m for m in markers if self.acknowledged <= m.epoch <= self.released]
        assert bases or self.acknowledged < 0, "a bag that a reader may ask for could not be made again"
        for marker in bases:
            self.check(marker)

    def check(self, marker: Marker) -> None:
        """Restores exactly this one."""
        root = self.root / "store" / "counts" / "0"
        self.compare({entry.name: (root / entry.stored).read_bytes() for entry in marker.files}, marker)

    def compare(self, found: dict[str, bytes], marker: Marker) -> None:
        needed = self.contents[marker.epoch, marker.generation]
        assert {name: found.get(name) for name in needed} == needed
        # Besides what a restore reads, only changes since the shipment before: a standby in memory applies those.
        assert all(Path(name).suffix in (".changelog", ".delta") for name in found.keys() - needed.keys())


actions = st.tuples(
    st.integers(0, 5),  # who: one of those that live, or somebody new
    st.integers(1, 4),  # epochs, or batches kept
    st.none() | st.integers(0, 40),  # interrupted after so many steps
    st.integers(0, 3),  # how far readers get on meanwhile
)


@settings(max_examples=40, deadline=None)
@given(st.lists(actions, min_size=1, max_size=12))
def test_the_two_newest_markers_are_always_whole(script: list[tuple[int, int, int | None, int]]) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        world = World(Path(directory))
        world.take_over(keep=2)
        for who, number, stop_after, read in script:
            newest = max((replica.query.epoch for replica in world.replicas), default=-1)
            world.released = min(world.released + read, newest)
            if who < min(len(world.replicas), 3):
                # The latest generations; older ones were stopped.
                world.ship(world.replicas[-1 - who], number, stop_after)
            else:
                world.take_over(keep=number)
            world.check_all()
