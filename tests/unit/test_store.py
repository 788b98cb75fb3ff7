"""What the manager must not forget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.builders import COUNTS, WORDS

from understudy.coordination.sqlite import SqliteStore
from understudy.model.messages import Receipt
from understudy.model.snapshot import Assignment


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "manager.db")


def receipt(epoch: int, at: float = 1.0, *, fresh: bool = True, sink: str = "out") -> Receipt:
    return Receipt(sink=sink, epoch=epoch, rows=epoch, digest=f"{epoch}", at=at, fresh=fresh)


def test_everything_survives_a_restart(tmp_path: Path, store: SqliteStore) -> None:
    facts: dict[str, Any] = {"goal": 5, "none": None, "run": {"id": "x", "nested": [1, 2.5, "ü"]}}
    store.keep(facts)
    assignments = (Assignment(COUNTS, "node-1", 3, 7, 2), Assignment(WORDS, "node-2", 1))
    for assignment in (Assignment(COUNTS, "node-9", 2), *assignments):
        store.assign(assignment)
    store.receive([receipt(1), receipt(0)])
    first = store.note(1.5, "lost", "node-1 is lost", {"node": "node-1"}, None)
    second = store.note(2.5, "assigned", "moved", {}, first)
    # Not closed: a killed manager closes nothing.
    again = SqliteStore(tmp_path / "manager.db")
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


def test_delivered_counts_to_the_first_gap(store: SqliteStore) -> None:
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
    store: SqliteStore, receipts: list[Receipt], duplicates: int
) -> None:
    for one in receipts:
        store.receive([one])
    assert store.duplicates("out") == duplicates
    first = store.receipts("out")[0]
    assert (first.at, first.fresh) == (receipts[0].at, receipts[0].fresh), "the first receipt counts"


def test_a_broken_transaction_leaves_nothing(store: SqliteStore) -> None:
    with pytest.raises(TypeError):
        store.keep({"a": 1, "b": object()})
    assert store.fact("a") is None
    broken = receipt(1).model_copy(update={"rows": None})
    with pytest.raises(Exception, match="NOT NULL"):
        store.receive([receipt(0), broken])
    assert store.receipts("out") == []
    store.receive([receipt(0)])
    assert store.delivered("out") == 1
