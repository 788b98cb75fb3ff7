"""Checkpoints in an object store: changes that race, answers that get lost, a store that is away, what is removed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import COUNTS, everything_in
from tests.checkpoint_contract import EVERYTHING, Replica
from tests.object_shelves import AT_ONCE, ObjectShelves, SteppedFolder, Wire

from understudy.checkpoints import object_head
from understudy.checkpoints.interface import Shipped
from understudy.checkpoints.object_head import Head, Ref
from understudy.checkpoints.object_open import ObjectCheckpoints
from understudy.checkpoints.object_store import ObjectStore
from understudy.clients.objects import Folder
from understudy.errors import Away, Unavailable
from understudy.log.disk import Disk

stores = pytest.importorskip("obstore.store")


@pytest.fixture
def shelves() -> Iterator[ObjectShelves]:
    made = ObjectShelves(stores.MemoryStore())
    yield made
    made.close()


@pytest.fixture
def primary(shelves: ObjectShelves, tmp_path: Path) -> Replica:
    return Replica(shelves, tmp_path / "a")


def check_whole(shelves: ObjectShelves) -> None:
    """Every file of every checkpoint that counts is there and is what was shipped."""
    for marker in shelves.markers():
        for entry in marker.files:
            assert len(shelves.read(entry)) == entry.size


# -- the head


def test_a_head_comes_back_as_it_was_written_or_not_at_all() -> None:
    head = Head().with_marker(Ref(3, 1, "markers/0/a")).with_marker(Ref(7, 2, "markers/1/b")).swept()
    content = object_head.encode(head)
    assert object_head.decode(content) == head
    assert head.epochs == [7, 3]
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1
        assert object_head.decode(bytes(flipped)) in (None, head)
    assert object_head.decode(b"") is None
    assert object_head.decode(b"[]") is None


def test_every_change_makes_another_head_and_nothing_to_change_none() -> None:
    one = Head().with_marker(Ref(3, 1, "m/0000000003-1-x.json"))
    assert one.keeping({0}, aside_from=0) is one
    assert one.set_aside("0000000004-1-x.json") is one
    damaged = one.set_aside("0000000003-1-x.json")
    assert (damaged.markers, damaged.aside) == ((), one.markers)
    assert damaged.keeping((), aside_from=4).aside == ()
    assert len({Head().number, one.number, damaged.number}) == 3


# -- replicas that race


def test_whatever_another_replica_does_meanwhile_a_shipment_ends_whole(tmp_path: Path) -> None:
    """At every step of a shipment another replica ships, recycles what this one was about to use again, and sweeps."""
    steps = 0
    while True:
        shelves = ObjectShelves(stores.MemoryStore())
        place = tmp_path / str(steps)
        slow = Replica(shelves, place / "a")
        slow.query.keep = 100
        slow.advance(4)
        fast = Replica.taking_over(slow, "b")
        taken = 0

        def meanwhile(_: str, at: int = steps, fast: Replica = fast) -> None:
            nonlocal taken
            taken += 1
            for _more in range(3 if taken == at + 1 else 0):
                fast.advance(1)

        slow.query.run(9)
        slow.ship(shelves.open(meanwhile))
        check_whole(shelves)
        marker, _ = shelves.open().restore(place / "c", None)
        assert marker is not None
        assert (marker.epoch, marker.generation) == (12, 1)
        assert everything_in(place / "c") == slow.query.needed()
        shelves.close()
        if taken <= steps:
            break
        steps += 1
    assert steps > 10


def test_a_sweep_in_the_middle_of_a_shipment_takes_nothing_from_it(tmp_path: Path) -> None:
    """A sweep removes what no marker names, so also what a shipment in the making has sent."""
    steps, swept = 0, True
    while swept:
        shelves = ObjectShelves(stores.MemoryStore())
        primary = Replica(shelves, tmp_path / str(steps) / "a")
        primary.advance(2)
        primary.query.run(2)
        other, taken, swept = shelves.open(), 0, False

        def sweep(_: str, at: int = steps, other: ObjectStore = other) -> None:
            nonlocal taken, swept
            taken += 1
            if taken == at + 1:
                swept = True
                other.recycle(EVERYTHING)

        primary.ship(shelves.open(sweep))
        assert [marker.epoch for marker in shelves.markers()] == [3, 1]
        check_whole(shelves)
        shelves.close()
        steps += 1
    assert steps > 5


def test_what_a_frozen_replica_removes_late_is_needed_by_nobody(shelves: ObjectShelves, tmp_path: Path) -> None:
    """It has decided what to remove, and freezes until its successor has shipped a file with the same content."""
    frozen = Replica(shelves, tmp_path / "a")
    frozen.advance(3)
    extra, content, written = Path("state/0/0/extra.sst"), b"again" * 100, 0
    (frozen.local / extra).write_bytes(content)
    frozen.advance(1)
    (frozen.local / extra).unlink()
    frozen.advance(1)

    def freeze(kind: str) -> None:
        nonlocal written
        written += kind == "put if"
        if written == 2 and kind == "put if":
            successor = Replica.taking_over(frozen, "b")
            (successor.local / extra).write_bytes(content)
            successor.advance(1)

    late = shelves.open(freeze)
    # It has swept before: the first change of its recycling is the one that lets a checkpoint go.
    late._swept = True
    frozen.query.run(1)
    frozen.ship(late)
    assert written == 2
    newest = shelves.markers()[0]
    assert (newest.generation, str(extra) in {entry.name for entry in newest.files}) == (2, True)
    check_whole(shelves)


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_an_answer_that_gets_lost_does_no_harm(primary: Replica, tmp_path: Path, lost: int) -> None:
    """The request was carried out; repeated, it fails, because the head is not the one it was made from any more."""
    shelves: Any = primary.shelves
    primary.advance(2)
    primary.query.run(2)
    primary.ship(shelves.open(wire=Wire(lose_answers=lost)))
    assert [marker.epoch for marker in shelves.markers()] == [3, 1]
    check_whole(shelves)
    assert primary.store.restore(tmp_path / "b", None)[0] is not None
    assert everything_in(tmp_path / "b") == primary.query.needed()


# -- requests


def test_nothing_is_listed_but_once_by_a_replica_that_recycles(primary: Replica, tmp_path: Path) -> None:
    shelves: Any = primary.shelves
    wire = Wire()
    store = shelves.open(wire=wire)
    primary.query.run(2)
    primary.ship(store)
    assert wire.listings == 2, "the sweep: files and markers"
    for _ in range(3):
        primary.query.run(1)
        primary.ship(store)
        store.acknowledged(EVERYTHING)
        store.newest()
    standby = shelves.open(wire=wire)
    _, held = standby.restore(tmp_path / "b", None)
    primary.advance(1)
    assert standby.pull(tmp_path / "b", held, 4) is not None
    assert wire.listings == 2


def test_a_look_at_an_unchanged_head_transfers_nothing_and_markers_are_read_once(primary: Replica) -> None:
    shelves: Any = primary.shelves
    wire = Wire()
    store = shelves.open(wire=wire)
    primary.advance(2)
    assert store.newest(fresh=True) == 1
    for _ in range(5):
        store.newest(fresh=True)
    assert wire.requests == 6


def test_the_newest_epoch_is_told_without_waiting(primary: Replica, tmp_path: Path) -> None:
    shelves: Any = primary.shelves
    primary.advance(2)
    arrived, go_on = threading.Event(), threading.Event()

    class Slow(SteppedFolder):
        def below(self, name: str) -> Slow:
            inner = super().below(name)
            return Slow(inner.store, inner.prefix, inner.shown)

        def get(self, name: str) -> Any:
            arrived.set()
            assert go_on.wait(60)
            return super().get(name)

    root = shelves.root
    opened = ObjectCheckpoints(Slow(root.store, root.prefix, root.shown), Disk(), AT_ONCE)
    store = opened.of(COUNTS)
    assert store.newest() == -1, "nothing was seen yet, and a look begins"
    assert arrived.wait(60)
    assert store.newest() == -1
    go_on.set()
    deadline = threading.Event()
    while store.newest() != 1:
        deadline.wait(0.005)
    opened.close()


# -- a store that is away


def test_while_the_store_is_away_the_last_answer_stays_and_a_shipment_fails(primary: Replica, tmp_path: Path) -> None:
    shelves: Any = primary.shelves
    wire = Wire()
    store = shelves.open(wire=wire)
    primary.query.run(2)
    primary.ship(store)
    wire.away = True
    primary.query.run(2)
    for attempt in (
        lambda: primary.ship(store),
        lambda: store.newest(fresh=True),
        lambda: store.acknowledged(EVERYTHING),
        lambda: store.recycle(EVERYTHING),
        lambda: store.pull(tmp_path / "b", Shipped(), -1),
        lambda: store.restore(tmp_path / "b", None),
    ):
        with pytest.raises(Away):
            attempt()
    assert store.newest() == 1
    assert not (tmp_path / "b").exists()
    wire.away = False
    assert primary.ship(store) > 0
    assert store.newest(fresh=True) == 3
    assert store.restore(tmp_path / "c", None)[0] is not None
    assert everything_in(tmp_path / "c") == primary.query.needed()


@pytest.fixture
def one_by_one() -> Iterator[ObjectShelves]:
    """Files are sent and fetched in their order."""
    made = ObjectShelves(stores.MemoryStore(), workers=1)
    yield made
    made.close()


def test_what_a_failed_shipment_has_sent_is_not_sent_again(one_by_one: ObjectShelves, tmp_path: Path) -> None:
    shelves, primary = one_by_one, Replica(one_by_one, tmp_path / "a")
    primary.query.run(3)
    wire, sent = Wire(), 0

    def stop(_: str) -> None:
        nonlocal sent
        sent += 1
        wire.away = sent == 4

    store = shelves.open(stop, wire)
    with pytest.raises(Away):
        primary.ship(store)
    wire.away = False
    before = shelves.files()
    assert len(before) == 4
    primary.ship(store)
    assert before < shelves.files() == {entry.stored for entry in shelves.markers()[0].files}


def test_a_restore_waits_until_the_store_is_back(primary: Replica, tmp_path: Path) -> None:
    shelves: Any = primary.shelves
    wanted = primary.advance(3)
    wire = Wire(away=True)
    store = shelves.open(wire=wire)
    store._patience = replace(AT_ONCE, patience_s=60.0)
    asked = threading.Event()

    def come_back() -> None:
        assert asked.wait(60)
        while wire.requests < 3:
            threading.Event().wait(0.005)
        wire.away = False

    back = threading.Thread(target=come_back)
    back.start()
    asked.set()
    marker, _ = store.restore(tmp_path / "b", None)
    back.join()
    assert marker is not None
    assert everything_in(tmp_path / "b") == wanted


def test_the_next_checkpoint_takes_over_what_was_fetched_of_one_that_was_recycled(
    one_by_one: ObjectShelves, tmp_path: Path
) -> None:
    """A large state may be recycled while it is fetched; without this a slow reader would never get one."""
    shelves, primary = one_by_one, Replica(one_by_one, tmp_path / "a")
    primary.query.run(3)
    (primary.local / "state/0/0/large.sst").write_bytes(b"x" * 1000)
    primary.ship()
    large = next(entry for entry in shelves.markers()[0].files if entry.name.endswith("large.sst"))
    wire, wanted = Wire(), dict[str, bytes]()

    def recycle(_: str) -> None:
        if (tmp_path / "b" / large.name).exists() and not wanted:
            wanted["large"] = b""
            for _more in range(3):
                wanted.update(primary.advance(1))

    marker, _ = shelves.open(recycle, wire).restore(tmp_path / "b", None)
    assert marker is not None
    assert marker.epoch == 5
    found = everything_in(tmp_path / "b")
    assert found.pop(large.name) == b"x" * 1000
    assert found == primary.query.needed()
    assert wire.pieces.count(large.stored) == 1
    assert not (tmp_path / "b-beside").exists()


# -- what is removed, and when


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_recycled_objects_stay_for_a_while(shelves: ObjectShelves, tmp_path: Path) -> None:
    clock, primary = Clock(), Replica(shelves, tmp_path / "a")
    pools = primary.store._pools  # type: ignore[attr-defined]
    primary.store = ObjectStore(shelves.root, COUNTS, Disk(), pools, replace(AT_ONCE, linger_s=60.0), clock)
    orphan = f"files/0/{'0' * 64}-left"
    shelves.root.below("counts/0").put(orphan, b"x", 1)
    contents = {}
    for epoch in range(4):
        contents[epoch] = primary.advance(1)
        clock.now += 10.0
    needed = {entry.stored for marker in shelves.markers() for entry in marker.files}
    assert shelves.files() > needed
    assert orphan in shelves.files()
    clock.now += 60.0
    primary.advance(1)
    clock.now += 60.0
    primary.advance(0)
    needed = {entry.stored for marker in shelves.markers() for entry in marker.files}
    assert shelves.files() == needed
    named = {ref.name for ref in shelves.head().markers}
    assert {name for name in shelves.names() if name.startswith("markers/")} >= named
    check_whole(shelves)


# -- damage to the head


def test_a_head_that_is_lost_is_no_new_beginning(primary: Replica, tmp_path: Path) -> None:
    shelves: Any = primary.shelves
    primary.advance(2)
    primary.advance(2)
    folder: Folder = shelves.root.below("counts/0")
    kept = folder.get("head.json")
    assert kept is not None
    folder.delete(["head.json"])
    with pytest.raises(Unavailable, match=r"head\.json, which lists them, is missing"):
        shelves.open().restore(tmp_path / "b", None)
    with pytest.raises(Unavailable, match="is gone"):
        primary.store.newest(fresh=True)
    folder.put("head.json", kept[0][:-3], len(kept[0]) - 3)
    with pytest.raises(Unavailable, match="is damaged"):
        shelves.open().restore(tmp_path / "b", None)
    folder.put("head.json", kept[0], len(kept[0]))
    assert shelves.open().restore(tmp_path / "b", None)[0] is not None


# -- the probe


def test_a_store_that_ignores_conditions_is_refused(shelves: ObjectShelves) -> None:
    class Careless(SteppedFolder):
        def _put_if(self, name: str, content: bytes, mode: Any) -> Any:
            self.put(name, content, len(content))
            return {"e_tag": "1"}

    shelves.root.probe()
    assert not list(shelves.root.names(""))
    with pytest.raises(Unavailable, match="both win"):
        Careless(stores.MemoryStore(), "x", "careless://x").probe()
