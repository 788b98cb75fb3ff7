"""Checkpoints as files: what holds besides the promises of every store (tests/checkpoint_contract.py)."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.builders import COUNTS, count_steps, everything_in, interrupted, killed
from tests.checkpoints import FakeQuery

from understudy.checkpoints.file_store import Store
from understudy.checkpoints.interface import Marker, Shipped
from understudy.checkpoints.spark_files import decode, encode
from understudy.errors import Unavailable
from understudy.log.disk import TEMPORARY, Disk

Stop = Callable[[Callable[[Disk], object], int], bool]

EVERYTHING = 10**9
"""All readers have acknowledged all there is."""


@pytest.fixture(autouse=True)
def no_power_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel has survives everything that happens here; waiting for the disk would only take time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


class Slice:
    """A query and its store, shipping as the shipper does."""

    def __init__(self, tmp: Path, name: str = "a", generation: int = 1) -> None:
        self.root, self.generation = tmp / "checkpoints", generation
        self.local = tmp / name
        self.query = FakeQuery(self.local, writer=name)
        self.shipped = Shipped()

    def store(self, disk: Disk | None = None) -> Store:
        return Store(self.root, COUNTS, disk or Disk())

    def ship(self, disk: Disk | None = None) -> int:
        checkpoint = self.query.committed()
        copied = self.store(disk).ship(checkpoint, checkpoint.epoch, self.generation, self.shipped).copied
        self.store(disk).recycle(released=EVERYTHING)
        return copied

    def advance(self, epochs: int) -> dict[str, bytes]:
        self.query.run(epochs)
        self.ship()
        return self.query.needed()

    def restore(self, to: Path, before: int | None = None, disk: Disk | None = None) -> Marker | None:
        return self.store(disk).restore(to, before)[0]

    @classmethod
    def taking_over(cls, other: Slice, name: str) -> Slice:
        """What a node does that hosts the slice from now on."""
        new = object.__new__(cls)
        new.root, new.generation = other.root, other.generation + 1
        new.local = other.local.with_name(name)
        marker, new.shipped = new.store().restore(new.local, None)
        assert marker is not None
        new.query = FakeQuery(new.local, marker.epoch, writer=name)
        return new


@pytest.fixture
def slice_(tmp_path: Path) -> Slice:
    return Slice(tmp_path)


def test_a_marker_without_watermarks_can_be_read_and_says_that_they_are_not_known() -> None:
    fields = {"epoch": 3, "generation": 1, "files": []}
    old = json.dumps(fields | {"crc": zlib.crc32(json.dumps(fields, sort_keys=True).encode())})
    assert decode(old.encode()) == Marker(3, 1, (), None)
    assert decode(encode(Marker(3, 1, (), ()))) == Marker(3, 1, (), ())


@pytest.mark.parametrize("stop", [interrupted, killed])
def test_interrupted_anywhere_the_old_or_the_new_checkpoint_comes_back(tmp_path: Path, stop: Stop) -> None:
    def prepared(place: Path) -> tuple[Slice, dict[int, dict[str, bytes]]]:
        slice_ = Slice(place)
        contents = {1: slice_.advance(2), 3: slice_.advance(2), 5: slice_.advance(2)}
        slice_.query.run(2)
        return slice_, contents | {7: slice_.query.needed()}

    counted = prepared(tmp_path / "count")[0]
    steps = count_steps(counted.ship)
    assert steps > 10
    seen = set()
    for step in range(0, steps, 1 if stop is interrupted else 5):
        place = tmp_path / str(step)
        slice_, contents = prepared(place)
        assert stop(slice_.ship, step)
        marker = slice_.restore(place / "b")
        assert marker is not None
        seen.add(marker.epoch)
        assert everything_in(place / "b") == contents[marker.epoch]
        assert slice_.store().acknowledged(EVERYTHING) in (3, 5)
        slice_.ship()
        again = slice_.restore(place / "c")
        assert again is not None
        assert everything_in(place / "c") == contents[again.epoch] == contents[7]
    assert seen >= {5}


def test_what_is_recycled_while_it_is_restored_comes_back_whole_or_as_a_newer_one(tmp_path: Path) -> None:
    """A large state takes longer to copy than its primary takes to ship the next two checkpoints."""

    def restored(place: Path, after: int) -> tuple[int, int]:
        slice_ = Slice(place)
        contents = {3: slice_.advance(4)}
        taken = 0

        def step(_: str) -> None:
            nonlocal taken
            taken += 1
            if taken == after:
                contents.update({epoch: slice_.advance(1) for epoch in (4, 5, 6)})

        marker = slice_.restore(place / "b", disk=Disk(on_step=step))
        assert marker is not None
        assert everything_in(place / "b") == contents[marker.epoch]
        assert not (place / "b-held").exists()
        return marker.epoch, taken

    unhurried, steps = restored(tmp_path / "alone", after=-1)
    assert {restored(tmp_path / str(after), after)[0] for after in range(1, steps)} == {unhurried, 6}


def own_files(slice_: Slice, epoch: int) -> list[Path]:
    """The stored files that only the newest marker names."""
    newest, older = slice_.store().markers()[:2]
    assert newest.epoch == epoch
    shared = {entry.name for entry in older.files}
    root = slice_.root / "counts" / "0"
    return [root / entry.stored for entry in newest.files if entry.name not in shared]


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    changed = {"truncate": content[:-1], "flip": bytes([content[0] ^ 1]) + content[1:], "empty": b""}
    if how == "delete":
        path.unlink()
    else:
        path.write_bytes(changed[how])


def test_a_marker_that_says_something_else_is_damaged(tmp_path: Path, slice_: Slice) -> None:
    slice_.advance(2)
    path = slice_.root / "counts/0/markers/0000000001-1.json"
    path.write_text(path.read_text().replace("offsets/1", "offsets/7"))
    assert "offsets/7" in path.read_text()
    # Nothing is acknowledged with the first checkpoint: everything can still be replayed.
    assert slice_.restore(tmp_path / "b") is None
    slice_.advance(2)
    (slice_.root / "counts/0/markers/0000000003-1.json").write_text("{}")
    with pytest.raises(Unavailable, match=r"0000000001-1\.json"):
        slice_.restore(tmp_path / "b")


def test_recycling_keeps_exactly_what_the_two_newest_need(slice_: Slice) -> None:
    for _ in range(6):
        slice_.advance(2)
    root = slice_.root / "counts" / "0"
    markers = slice_.store().markers()
    assert [marker.epoch for marker in markers] == [11, 9]
    needed = {entry.stored for marker in markers for entry in marker.files}
    stored = {name for name in everything_in(root) if name.startswith("files/")}
    assert stored == needed
    assert not [path for path in root.rglob("*") if path.is_dir() and not list(path.iterdir())]


@pytest.mark.parametrize("stop", [interrupted, killed])
def test_what_an_interrupted_shipment_left_is_recycled(tmp_path: Path, slice_: Slice, stop: Stop) -> None:
    slice_.advance(2)
    slice_.query.run(2)
    assert stop(slice_.ship, 4)
    slice_.shipped = Shipped()
    for _ in range(3):
        slice_.advance(2)
    root = slice_.root / "counts" / "0"
    needed = {entry.stored for marker in slice_.store().markers() for entry in marker.files}
    assert {name for name in everything_in(root) if name.startswith("files/")} == needed
    assert not list(root.rglob(f"{TEMPORARY}*"))


def test_files_that_vanish_while_shipping_are_not_needed(tmp_path: Path, slice_: Slice) -> None:
    slice_.query.run(4)
    doomed = slice_.local / "state/0/0/2.delta"
    assert doomed.exists()

    def spark_forgets(_: str) -> None:
        doomed.unlink(missing_ok=True)

    slice_.ship(Disk(on_step=spark_forgets))
    marker = slice_.restore(tmp_path / "b")
    assert marker is not None
    assert everything_in(tmp_path / "b") == slice_.query.needed()


@pytest.mark.parametrize("doomed", ["commits/3", "offsets/3", "metadata", "commits", "."])
def test_a_checkpoint_that_vanishes_itself_is_not_shipped(tmp_path: Path, slice_: Slice, doomed: str) -> None:
    """A local directory may be wiped under a zombie; half of a checkpoint must never look like a whole one."""
    old = slice_.advance(2)
    slice_.query.run(2)
    checkpoint = slice_.query.committed()
    for path in sorted((slice_.local / doomed).rglob("*"), reverse=True):
        if path.is_file():
            path.unlink()
    if (slice_.local / doomed).is_file():
        (slice_.local / doomed).unlink()
    with pytest.raises((OSError, Unavailable)):
        slice_.store().ship(checkpoint, checkpoint.epoch, 1, slice_.shipped)
    assert slice_.restore(tmp_path / "b") is not None
    assert everything_in(tmp_path / "b") == old


def test_markers_are_json(slice_: Slice) -> None:
    """Somebody who looks for the reason of a failure can read them."""
    slice_.advance(1)
    path = slice_.root / "counts/0/markers/0000000000-1.json"
    assert '"epoch": 0' in json.dumps(json.loads(path.read_text()))


def test_the_last_batch_can_be_run_again_although_a_snapshot_covers_it(tmp_path: Path, slice_: Slice) -> None:
    """A standby loads its state that way; without the state before the batch it could not start."""
    slice_.query.run(3)
    version = slice_.query.batch + 1
    assert (slice_.local / f"state/0/0/{version}.zip").exists(), "the snapshot is of the last batch"
    slice_.ship()
    slice_.restore(tmp_path / "b")
    state = {path.name for path in (tmp_path / "b" / "state/0/0").iterdir()}
    assert {f"{version - 2}.zip", f"{version - 1}.changelog"} <= state
