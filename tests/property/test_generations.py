"""Several generations ship and recycle side by side, interrupted anywhere: the two newest markers are always whole."""

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
from understudy.log.disk import Disk
from understudy.stream.checkpoint import Marker
from understudy.stream.shipping import Shipped, Store


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
            self.acknowledged = max(self.acknowledged, store.acknowledged())
            store.recycle()
        except Crash:
            replica.shipped = Shipped()

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
)


@settings(max_examples=40, deadline=None)
@given(st.lists(actions, min_size=1, max_size=12))
def test_the_two_newest_markers_are_always_whole(script: list[tuple[int, int, int | None]]) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        world = World(Path(directory))
        world.take_over(keep=2)
        for who, number, stop_after in script:
            if who < min(len(world.replicas), 3):
                # The latest generations; older ones were stopped.
                world.ship(world.replicas[-1 - who], number, stop_after)
            else:
                world.take_over(keep=number)
            for marker in world.store().markers()[:2]:
                world.check(marker)
