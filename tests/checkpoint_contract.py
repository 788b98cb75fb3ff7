"""What every store of checkpoints promises, as tests: `TestFileStore` and the like inherit them, and open a store.

A store is opened again and again: each stands for another process. Tests damage it from outside, through `Shelves`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from tests.builders import Crash, everything_in
from tests.checkpoints import FakeQuery
from understudy.checkpoints.interface import CheckpointStore, Entry, Marker, Shipped
from understudy.checkpoints.spark_files import committed, last_batch
from understudy.errors import Unavailable

EVERYTHING = 10**9
"""All readers have acknowledged all there is."""
DAMAGES = ("delete", "truncate", "flip", "empty")
Step = Callable[[str], None]


def ignore(_: str) -> None:
    pass


class Shelves(Protocol):
    """One slice's checkpoints, and what can be done to them from outside."""

    def open(self, on_step: Step = ignore) -> CheckpointStore:
        """`on_step` is called after every change to the store, or to the directory of a restore."""
        ...

    def markers(self) -> list[Marker]:
        """Those that count, newest first."""
        ...

    def read(self, entry: Entry) -> bytes: ...

    def damage(self, entry: Entry, how: str) -> None: ...

    def damage_marker(self, epoch: int, how: str) -> None: ...

    def files(self) -> set[str]:
        """The names under which files of checkpoints are stored."""
        ...


def damaged(content: bytes, how: str) -> bytes | None:
    """What damage leaves of a content, None if nothing."""
    changed = {"truncate": content[:-1], "flip": bytes([content[0] ^ 1]) + content[1:], "empty": b""}
    return None if how == "delete" else changed[how]


def stop_at(step: int) -> Step:
    """Stops the process right after its step number `step`."""
    seen = 0

    def hook(_: str) -> None:
        nonlocal seen
        seen += 1
        if seen > step:
            raise Crash

    return hook


class Replica:
    """A query and its store, shipping as the shipper does."""

    def __init__(self, shelves: Shelves, local: Path, generation: int = 1) -> None:
        self.shelves, self.local, self.generation = shelves, local, generation
        self.store, self.shipped = shelves.open(), Shipped()
        self.query = FakeQuery(local, writer=local.name)

    @classmethod
    def taking_over(cls, other: Replica, name: str) -> Replica:
        new = object.__new__(cls)
        new.shelves, new.generation = other.shelves, other.generation + 1
        new.local = other.local.with_name(name)
        new.store = new.shelves.open()
        marker, new.shipped = new.store.restore(new.local, None)
        assert marker is not None
        new.query = FakeQuery(new.local, marker.epoch, writer=name)
        return new

    def ship(self, store: CheckpointStore | None = None, released: int = EVERYTHING) -> int:
        checkpoint, store = self.query.committed(), store or self.store
        copied = store.ship(checkpoint, checkpoint.epoch, self.generation, self.shipped).copied
        store.recycle(released)
        return copied

    def advance(self, epochs: int, released: int = EVERYTHING) -> dict[str, bytes]:
        self.query.run(epochs)
        self.ship(released=released)
        return self.query.needed()


class CheckpointContract:
    """Needs a fixture `shelves`."""

    @pytest.fixture
    def primary(self, shelves: Shelves, tmp_path: Path) -> Replica:
        return Replica(shelves, tmp_path / "a")

    # -- there and back

    def test_a_restored_checkpoint_is_the_shipped_one_to_the_byte(self, primary: Replica, tmp_path: Path) -> None:
        primary.query.run(4)
        primary.query.begin_next()
        primary.ship()
        marker, _ = primary.shelves.open().restore(tmp_path / "b", None)
        assert marker is not None
        assert (marker.epoch, marker.generation) == (3, 1)
        assert everything_in(tmp_path / "b") == primary.query.needed()
        found = committed(tmp_path / "b")
        assert found is not None
        assert (found.batch, found.epoch) == (3, 3)
        assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("b")) == ["b"]

    def test_nothing_shipped_means_start_from_the_beginning(self, shelves: Shelves, tmp_path: Path) -> None:
        store = shelves.open()
        assert store.restore(tmp_path / "b", None)[0] is None
        assert (store.newest(fresh=True), store.acknowledged(EVERYTHING)) == (-1, -1)
        assert store.pull(tmp_path / "b", Shipped(), -1) is None
        store.recycle(EVERYTHING)
        assert committed(tmp_path / "b") is None

    def test_a_slice_without_state_ships_where_it_is(self, shelves: Shelves, tmp_path: Path) -> None:
        store = shelves.open()
        for epoch in (4, 9):
            assert store.ship(None, epoch, 1, Shipped()).copied == 0
        assert shelves.open().restore(tmp_path / "b", None)[0] == Marker(9, 1, (), ())
        assert store.newest(fresh=True) == 9
        assert store.acknowledged(EVERYTHING) == 4

    def test_watermarks_come_back_with_the_checkpoint_they_belong_to(self, primary: Replica, tmp_path: Path) -> None:
        for epoch in range(3):
            primary.query.run(1)
            checkpoint = replace(primary.query.committed(), watermarks=(epoch * 1000, None))
            primary.store.ship(checkpoint, epoch, 1, primary.shipped)
        for before, marks in ((None, (2000, None)), (2, (1000, None))):
            marker, _ = primary.store.restore(tmp_path / str(before), before)
            assert marker is not None
            assert marker.watermarks == marks

    @pytest.mark.parametrize("size", [0, 1, (8 << 20) - 1, 8 << 20, (20 << 20) + 7])
    def test_files_of_any_size(self, primary: Replica, tmp_path: Path, size: int) -> None:
        primary.query.run(1)
        content = bytes(range(256)) * (size // 256) + bytes(size % 256)
        (primary.local / "state/0/0/1.zip").write_bytes(content)
        primary.ship()
        assert primary.shelves.open().restore(tmp_path / "b", None)[0] is not None
        assert (tmp_path / "b/state/0/0/1.zip").read_bytes() == content

    def test_a_checkpoint_holds_no_directory_of_where_it_was_made(self, primary: Replica, tmp_path: Path) -> None:
        primary.query.run(1)
        written = primary.local / "state/0/_metadata/v2/1"
        written.parent.mkdir(parents=True)
        written.write_text(f"schemas are in {primary.local}/state/0/_stateSchema")
        primary.ship()
        assert primary.shelves.open().restore(tmp_path / "b", None)[0] is not None
        assert (tmp_path / "b/state/0/_metadata/v2/1").read_text() == (
            f"schemas are in {tmp_path / 'b'}/state/0/_stateSchema"
        )

    @pytest.mark.parametrize(("before", "epoch"), [(None, 5), (6, 5), (5, 3), (4, 3), (3, None), (0, None)])
    def test_restoring_before_an_epoch(
        self, primary: Replica, tmp_path: Path, before: int | None, epoch: int | None
    ) -> None:
        contents = {last: primary.advance(2) for last in (1, 3, 5)}
        marker, _ = primary.store.restore(tmp_path / "b", before)
        assert (marker.epoch if marker else None) == epoch
        assert everything_in(tmp_path / "b") == (contents[epoch] if epoch is not None else {})

    def test_who_restores_hears_which_it_will_be_before_anything_is_there(
        self, primary: Replica, tmp_path: Path
    ) -> None:
        primary.advance(2)
        primary.advance(2)
        heard: list[tuple[int, bool]] = []
        primary.store.restore(tmp_path / "b", None, lambda m: heard.append((m.epoch, (tmp_path / "b").exists())))
        assert heard == [(3, False)]

    # -- what is copied, what is kept

    def test_only_what_is_new_is_copied(self, primary: Replica, tmp_path: Path) -> None:
        primary.query.run(3)
        first = primary.ship()
        assert first == sum(map(len, primary.query.needed().values()))
        assert primary.ship() == 0
        primary.query.run(1)
        assert 0 < primary.ship() < first
        successor = Replica.taking_over(primary, "b")
        (successor.local / "metadata").write_text('{"id":"a"}')
        successor.query.run(1)
        assert 0 < successor.ship() < first

    def test_what_readers_may_still_ask_for_can_be_made_again(self, primary: Replica, tmp_path: Path) -> None:
        """The readers have acknowledged epoch 2 only: every later bag may still have to be made again."""
        contents = {epoch: primary.advance(1, released=2) for epoch in range(9)}
        assert [marker.epoch for marker in primary.shelves.markers()] == [8, 7, 3, 2]
        assert primary.store.acknowledged(released=2) == 2
        for before, state in ((3, 2), (5, 3), (8, 7)):
            marker, _ = primary.store.restore(tmp_path / str(before), before)
            assert marker is not None
            assert marker.epoch == state
            found = everything_in(tmp_path / str(before))
            assert {name: found.get(name) for name in contents[state]} == contents[state]
        primary.store.recycle(released=7)
        assert [marker.epoch for marker in primary.shelves.markers()] == [8, 7]
        assert primary.store.acknowledged(released=7) == 7

    def test_recycling_keeps_exactly_what_the_two_newest_need(self, primary: Replica) -> None:
        for _ in range(6):
            primary.advance(2)
        markers = primary.shelves.markers()
        assert [marker.epoch for marker in markers] == [11, 9]
        assert primary.shelves.files() == {entry.stored for marker in markers for entry in marker.files}

    def test_what_an_interrupted_shipment_left_is_recycled(self, primary: Replica, tmp_path: Path) -> None:
        primary.advance(2)
        primary.query.run(2)
        with pytest.raises(Crash):
            primary.ship(primary.shelves.open(stop_at(4)))
        primary = Replica.taking_over(primary, "b")
        for _ in range(4):
            primary.advance(2)
        needed = {entry.stored for marker in primary.shelves.markers() for entry in marker.files}
        assert primary.shelves.files() == needed

    # -- interruptions and several replicas

    def test_interrupted_anywhere_the_old_or_the_new_checkpoint_comes_back(
        self, primary: Replica, tmp_path: Path
    ) -> None:
        contents = {epoch: primary.advance(2) for epoch in (1, 3)}
        seen = set()
        step, ended = 0, False
        while not ended:
            primary.query.run(2)
            contents[primary.query.epoch] = primary.query.needed()
            with suppress(Crash):
                primary.ship(primary.shelves.open(stop_at(step)))
                ended = True
            local = tmp_path / f"after-{step}"
            marker, _ = primary.shelves.open().restore(local, None)
            assert marker is not None
            seen.add(primary.query.epoch - marker.epoch)
            assert everything_in(local) == contents[marker.epoch]
            primary.shipped = Shipped()
            primary.ship()
            assert primary.store.acknowledged(EVERYTHING) >= 3
            step += 1 + step // 8
        assert step > 10
        assert seen == {0, 2}

    def test_a_restore_interrupted_anywhere_can_be_repeated(self, primary: Replica, tmp_path: Path) -> None:
        wanted = primary.advance(3)
        interrupted = 0
        while True:
            try:
                primary.shelves.open(stop_at(interrupted)).restore(tmp_path / "b", None)
                break
            except Crash:
                interrupted += 1
        assert interrupted > 3
        assert everything_in(tmp_path / "b") == wanted

    def test_what_is_recycled_while_it_is_restored_comes_back_whole_or_as_a_newer_one(
        self, primary: Replica, tmp_path: Path
    ) -> None:
        """A large state takes longer to copy than its primary takes to ship the next two checkpoints."""
        contents, turn = {3: primary.advance(4)}, threading.Lock()
        for after in (1, 3, 5):
            taken = 0

            def step(_: str, after: int = after) -> None:
                nonlocal taken
                with turn:
                    taken += 1
                    for _more in range(3 if taken == after else 0):
                        needed = primary.advance(1)
                        contents[primary.query.epoch] = needed

            local = tmp_path / f"b{after}"
            marker, _ = primary.shelves.open(step).restore(local, None)
            assert marker is not None
            assert everything_in(local) == contents[marker.epoch]
            assert not [path for path in tmp_path.iterdir() if path.name.startswith(f"{local.name}-")]

    def test_a_zombie_never_breaks_the_markers_of_who_took_over(self, primary: Replica, tmp_path: Path) -> None:
        """The zombie ships on, forgets files and recycles; the other, a little behind, overtakes it."""
        primary.query.keep = 1
        primary.advance(3)
        successor = Replica.taking_over(primary, "b")
        successor.query.keep = 100
        primary.advance(3)
        primary.advance(3)
        contents = {11: successor.advance(9), 12: successor.advance(1)}
        for before in (None, 12):
            marker, _ = successor.store.restore(tmp_path / str(before), before)
            assert marker is not None
            assert marker.generation == 2
            assert everything_in(tmp_path / str(before)) == contents[marker.epoch]

    def test_replicas_that_ship_and_recycle_at_once_leave_whole_checkpoints(
        self, primary: Replica, tmp_path: Path
    ) -> None:
        primary.advance(3)
        replicas = [primary, *(Replica.taking_over(primary, name) for name in ("b", "c"))]
        for number, one in enumerate(replicas):
            one.generation, one.query.keep = number + 1, 2
        contents: dict[tuple[int, int], dict[str, bytes]] = {}
        start = threading.Barrier(len(replicas))

        def work(replica: Replica) -> None:
            start.wait(60)
            for _ in range(4):
                replica.query.run(1)
                contents[replica.query.epoch, replica.generation] = replica.query.needed()
                # One that others have overtaken may fail: its files are in nobody's way.
                with suppress(OSError):
                    replica.ship()

        with ThreadPoolExecutor(len(replicas)) as pool:
            list(pool.map(work, replicas))
        newest = primary.shelves.markers()[:2]
        assert len(newest) == 2
        for marker in newest:
            found = {entry.name: primary.shelves.read(entry) for entry in marker.files}
            needed = contents[marker.epoch, marker.generation]
            assert {name: found.get(name) for name in needed} == needed

    @pytest.mark.parametrize("doomed", ["commits/3", "offsets/3", "metadata"])
    def test_a_checkpoint_that_vanishes_itself_is_not_shipped(
        self, primary: Replica, tmp_path: Path, doomed: str
    ) -> None:
        old = primary.advance(2)
        primary.query.run(2)
        checkpoint = primary.query.committed()
        (primary.local / doomed).unlink()
        with pytest.raises((OSError, Unavailable)):
            primary.store.ship(checkpoint, checkpoint.epoch, 1, primary.shipped)
        assert primary.store.restore(tmp_path / "b", None)[0] is not None
        assert everything_in(tmp_path / "b") == old

    # -- following

    def test_a_standby_gets_what_the_primary_shipped_and_only_what_is_new(
        self, primary: Replica, tmp_path: Path
    ) -> None:
        primary.advance(4)
        standby, local = primary.shelves.open(), tmp_path / "standby"
        marker, held = standby.restore(local, None)
        assert marker is not None
        whole = sum(map(len, everything_in(local).values()))
        assert standby.pull(local, held, marker.epoch) is None, "nothing new"
        for _ in range(5):
            needed = primary.advance(1)
            pulled = standby.pull(local, held, marker.epoch)
            assert pulled is not None
            marker, size = pulled
            assert 0 < size < whole
            here, found = committed(local), everything_in(local)
            assert here is not None
            assert (here.epoch, here.batch) == (marker.epoch, last_batch(marker))
            assert {n: found.get(n) for n in needed if n != "metadata"} == {
                n: content for n, content in needed.items() if n != "metadata"
            }

    @pytest.mark.parametrize("kind", ["state", "offsets", "commits"])
    @pytest.mark.parametrize("how", ["delete", "flip"])
    def test_half_of_a_checkpoint_leaves_the_query_where_it_was(
        self, primary: Replica, tmp_path: Path, kind: str, how: str
    ) -> None:
        primary.advance(4)
        standby, local = primary.shelves.open(), tmp_path / "standby"
        marker, held = standby.restore(local, None)
        assert marker is not None
        before = {n: c for n, c in everything_in(local).items() if n.startswith(("offsets/", "commits/"))}
        primary.advance(1)
        newest, heard = primary.shelves.markers()[0], list[int]()
        new = [e for e in newest.files if e.name.startswith(kind) and e.name not in everything_in(local)]
        primary.shelves.damage(new[-1], how)
        assert standby.pull(local, held, marker.epoch, lambda epoch, _: heard.append(epoch)) is None
        assert heard == [4]
        assert {n: c for n, c in everything_in(local).items() if n.startswith(("offsets/", "commits/"))} == before
        assert primary.store.newest(fresh=True) == 3, "it no longer counts"
        primary.advance(1)
        assert standby.pull(local, held, marker.epoch) is not None, "the next one is whole"

    # -- damage

    def own(self, shelves: Shelves) -> list[Entry]:
        """The files that only the newest checkpoint has."""
        newest, older = shelves.markers()[:2]
        shared = {entry.name for entry in older.files}
        return [entry for entry in newest.files if entry.name not in shared]

    @pytest.mark.parametrize("which", [0, -1])
    @pytest.mark.parametrize("how", DAMAGES)
    def test_damage_falls_back_to_the_checkpoint_before(
        self, primary: Replica, tmp_path: Path, which: int, how: str
    ) -> None:
        old, heard = primary.advance(3), list[int]()
        primary.advance(1)
        primary.shelves.damage(self.own(primary.shelves)[which], how)
        store = primary.shelves.open()
        for name in ("b", "c"):
            marker, _ = store.restore(tmp_path / name, None, on_damaged=lambda epoch, _: heard.append(epoch))
            assert marker is not None
            assert marker.epoch == 2
            assert everything_in(tmp_path / name) == old, "nothing of the damaged checkpoint is left over"
        assert heard == [3], "said once"
        assert (store.newest(fresh=True), store.acknowledged(EVERYTHING)) == (2, -1), "it no longer counts"

    @pytest.mark.parametrize("how", DAMAGES[1:])
    def test_a_damaged_marker_is_damage_and_not_a_new_beginning(
        self, primary: Replica, tmp_path: Path, how: str
    ) -> None:
        old = primary.advance(2)
        primary.advance(2)
        primary.shelves.damage_marker(3, how)
        marker, _ = primary.shelves.open().restore(tmp_path / "b", None)
        assert marker is not None
        assert everything_in(tmp_path / "b") == old
        primary.shelves.damage_marker(1, how)
        with pytest.raises(Unavailable) as raised:
            primary.shelves.open().restore(tmp_path / "c", None)
        assert all(f"{epoch:010d}-1" in raised.value.why for epoch in (1, 3))

    def test_the_slice_ships_a_damaged_one_again_with_files_of_its_own(self, primary: Replica, tmp_path: Path) -> None:
        primary.advance(3)
        primary.advance(1)
        primary.shelves.damage(self.own(primary.shelves)[0], "flip")
        assert primary.shelves.open().restore(tmp_path / "b", None)[0] is not None
        wanted = primary.advance(1)
        marker, _ = primary.shelves.open().restore(tmp_path / "c", None)
        assert marker is not None
        assert marker.epoch == 4
        assert everything_in(tmp_path / "c") == wanted

    def test_both_broken_says_which_files_and_moves_nothing(self, primary: Replica, tmp_path: Path) -> None:
        primary.advance(3)
        primary.advance(1)
        victims = [next(e for e in m.files if e.name == f"offsets/{m.epoch}") for m in primary.shelves.markers()]
        for victim in victims:
            primary.shelves.damage(victim, "flip")
        for _ in range(2):
            with pytest.raises(Unavailable) as raised:
                primary.shelves.open().restore(tmp_path / "b", None)
            assert "counts[0]" in raised.value.what
            assert raised.value.why.count("is damaged") == 2
            assert victims[-1].stored in raised.value.why
        assert not everything_in(tmp_path / "b")
        assert [marker.epoch for marker in primary.shelves.markers()] == [3, 2]

    def test_set_aside_markers_go_when_nobody_can_ask_for_them(self, primary: Replica, tmp_path: Path) -> None:
        primary.advance(3)
        primary.advance(1)
        primary.shelves.damage(self.own(primary.shelves)[0], "flip")
        successor = Replica.taking_over(primary, "b")
        for _ in range(5):
            successor.advance(1)
        for marker in primary.shelves.markers():
            primary.shelves.damage(next(e for e in marker.files if e.name == f"offsets/{marker.epoch}"), "delete")
        with pytest.raises(Unavailable) as raised:
            primary.shelves.open().restore(tmp_path / "c", None)
        assert "was damaged before" not in raised.value.why
