"""What the manager must not forget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.builders import COUNTS, WORDS
from tests.simulated.scenario import play
from tests.simulated.schedules import draw
from tests.simulated.store import MemoryStore

from understudy.coordination.interface import StateStore
from understudy.coordination.sqlite import SqliteStore
from understudy.model.events import COUNT
from understudy.model.messages import Receipt
from understudy.model.run import Rhythm
from understudy.model.snapshot import Assignment


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> StateStore:
    """What every store must do. The one in memory belongs to the simulated cluster."""
    return MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "manager.db")


def reopened(store: StateStore, tmp_path: Path) -> StateStore:
    """What a restarted manager finds. Nothing is closed before: a killed manager closes nothing."""
    return store if isinstance(store, MemoryStore) else SqliteStore(tmp_path / "manager.db")


def receipt(epoch: int, at: float = 1.0, *, fresh: bool = True, sink: str = "out") -> Receipt:
    return Receipt(sink=sink, epoch=epoch, rows=epoch, digest=f"{epoch}", at=at, fresh=fresh)


def test_everything_survives_a_restart(tmp_path: Path, store: StateStore) -> None:
    facts: dict[str, Any] = {"goal": 5, "none": None, "run": {"id": "x", "nested": [1, 2.5, "ü"]}}
    store.keep(facts)
    assignments = (Assignment(COUNTS, "node-1", 3, 7, 2), Assignment(WORDS, "node-2", 1))
    for assignment in (Assignment(COUNTS, "node-9", 2), *assignments):
        store.assign(assignment)
    store.receive([receipt(1), receipt(0)])
    first = store.note(1.5, "lost", "node-1 is lost", {"node": "node-1"}, None)
    second = store.note(2.5, "assigned", "moved", {}, first)
    again = reopened(store, tmp_path)
    assert {name: again.fact(name) for name in facts} == facts
    assert again.fact("unknown") is None
    assert set(again.assignments()) == set(assignments)
    assert again.receipts("out") == [receipt(0), receipt(1)]
    assert again.delivered("out") == 2
    assert [(e.number, e.cause, e.fields) for e in again.events()] == [
        (first, None, {"node": "node-1"}),
        (second, first, {}),
    ]
    assert [e.kind for e in again.events(after=first)] == ["assigned"]


def test_what_was_kept_does_not_change_with_what_it_was_made_of(store: StateStore) -> None:
    lost = {"node-1": 3}
    store.keep({"lost": lost})
    lost["node-2"] = 4
    assert store.fact("lost") == {"node-1": 3}


def test_the_last_event_of_a_kind_about_a_slice_is_found(store: StateStore) -> None:
    for number, (kind, name) in enumerate([("a", "x[0]"), ("b", "x[0]"), ("a", "x[1]"), ("a", "x[0]")], start=1):
        assert store.note(float(number), kind, "text", {"slice": name}, None) == number
    assert {name: event.number for name, event in store.latest("a").items()} == {"x[0]": 4, "x[1]": 3}
    assert store.latest("c") == {}
    assert store.latest_number(("a", "b"), "x[0]") == 4
    assert store.latest_number(("b", "c"), "x[0]") == 2
    assert store.latest_number(("b",), "x[1]") is None


def test_events_are_read_from_either_end(store: StateStore) -> None:
    assert store.newest_events(5) == store.events() == []
    for number in range(6):
        store.note(float(number), "even" if number % 2 else "odd", "text", {}, None)
    assert [event.number for event in store.events(after=2, limit=3)] == [3, 4, 5]
    assert [event.number for event in store.newest_events(4)] == [3, 4, 5, 6]
    assert [event.number for event in store.newest_events(4, {"odd"})] == [3, 5]
    assert store.totals() == {"odd": {COUNT: 3.0}, "even": {COUNT: 3.0}}


def test_delays_are_counted_against_the_rhythm(store: StateStore) -> None:
    rhythm = Rhythm(epoch=0, time=10.0, epoch_s=1.0)
    store.receive([receipt(0, 10.5), receipt(1, 11.5), receipt(3, 14.0)], rhythm)
    assert store.delays("out") == {500: 2}, "an epoch after a gap is not counted yet"
    store.receive([receipt(2, 12.25)], rhythm)
    assert store.delays("out") == {500: 2, 250: 1, 1000: 1}
    assert store.tally("out").epochs == 4
    store.receive([receipt(4, 30.0)], Rhythm(epoch=4, time=30.0, epoch_s=1.0))
    assert store.delays("out") == {0: 1}, "a resumed run counts anew"
    assert store.delays("other") == {}


def test_epochs_with_a_gap_in_them_are_listed(store: StateStore) -> None:
    lossy = receipt(1).model_copy(update={"lost": ("counts[0]",)})
    store.receive([receipt(0), lossy])
    assert store.epochs_with_loss("out") == [1]
    assert store.receipts("out", first=1) == [lossy]


def test_a_cluster_does_the_same_with_either_store(tmp_path: Path) -> None:
    chains = [seed for seed in range(60) if draw(seed).settings["topology"] == "chain"]
    for seed in chains[:8]:
        in_memory, in_sqlite = play(draw(seed)).store, play(draw(seed), tmp_path).store
        assert in_memory.events() == in_sqlite.events(), f"seed {seed}"
        assert in_memory.assignments() == in_sqlite.assignments(), f"seed {seed}"
        assert in_memory.receipts("out") == in_sqlite.receipts("out"), f"seed {seed}"
        assert in_memory.tally("out") == in_sqlite.tally("out"), f"seed {seed}"


def test_delivered_counts_to_the_first_gap(store: StateStore) -> None:
    assert store.delivered("out") == 0
    for epoch, delivered in ((1, 0), (0, 2), (4, 2), (3, 2), (2, 5)):
        store.receive([receipt(epoch)])
        assert store.delivered("out") == delivered
    assert store.delivered("other") == 0


@pytest.mark.parametrize(
    ("receipts", "duplicates"),
    [
        ([receipt(0, 1.0), receipt(0, 1.0)], 0),
        ([receipt(0, 1.0), receipt(0, 2.0)], 1),
        ([receipt(0, 1.0), receipt(0, 2.0, fresh=False)], 0),
        ([receipt(0, 1.0, fresh=False), receipt(0, 2.0)], 0),
        ([receipt(0, 1.0), receipt(0, 2.0), receipt(0, 2.0), receipt(0, 2.0)], 1),
        ([receipt(0, 1.0), receipt(0, 2.0), receipt(1, 1.0), receipt(1, 2.0)], 2),
        ([receipt(0, 1.0), receipt(0, 2.0, sink="other")], 0),
        ([receipt(0, 1.0).model_copy(update={"repeated": True})], 1),
        ([receipt(0, 1.0, fresh=False), receipt(0, 1.0).model_copy(update={"repeated": True})], 1),
    ],
    ids=["said again", "written twice", "found there", "found, then written", "said three times", "two", "other sink",
         "begun twice", "found, then begun twice"],
)  # fmt: skip
def test_an_epoch_is_duplicate_if_it_was_written_afresh_twice(
    store: StateStore, receipts: list[Receipt], duplicates: int
) -> None:
    for one in receipts:
        store.receive([one])
    assert store.duplicates("out") == duplicates
    first = store.receipts("out")[0]
    assert (first.at, first.fresh) == (receipts[0].at, receipts[0].fresh), "the first receipt counts"


def test_a_fact_that_cannot_be_kept_leaves_nothing(store: StateStore) -> None:
    with pytest.raises(TypeError):
        store.keep({"a": 1, "b": object()})
    assert store.fact("a") is None


def test_a_broken_transaction_leaves_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "manager.db")
    broken = receipt(1).model_copy(update={"rows": None})
    with pytest.raises(Exception, match="NOT NULL"):
        store.receive([receipt(0), broken])
    assert store.receipts("out") == []
    store.receive([receipt(0)])
    assert store.delivered("out") == 1
