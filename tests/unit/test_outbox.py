"""Who may publish when a slice changes hands: a replica that was given up and its successor, from two states."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.builders import COUNTS, WORDS, a_bag, rows_of

from understudy.log.bag import Bag
from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.log.spool import Spool
from understudy.model.layout import Kind, Vertex
from understudy.model.messages import Deploy
from understudy.model.recovery import Guarantee, Recovery
from understudy.stream.failures import Stopped
from understudy.stream.outbox import Outbox
from understudy.stream.replica import Replica


class Publisher:
    """As much of a replica as an outbox needs."""

    def __init__(self, tmp_path: Path, generation: int, vertex: Vertex) -> None:
        self.slice = WORDS
        self.vertex = vertex
        log = FileLog(tmp_path / "log", Disk())
        self.context: Any = SimpleNamespace(log=log, released=lambda slice_id: log.floor(slice_id, [COUNTS]))
        self.live: Any = SimpleNamespace(update=lambda **_: None, finished=lambda *_: None)
        self.deploy = Deploy(slice=WORDS, generation=generation)
        self.durable: list[bool] = []
        self.outbox = Outbox(cast("Replica", self), Spool(tmp_path / str(generation), Disk()))

    def publish(self, made: Bag, *, durable: bool) -> bool:
        self.durable.append(durable)
        return bool(self.context.log.publish(made, durable=durable).first)

    def make(self, epoch: int) -> bool:
        """The bag of an epoch, which tells who made it."""
        return self.outbox.put(a_bag(epoch, rows_of(epoch, self.deploy.generation)))


def vertex(guarantee: str = Guarantee.PRECISE, *, deterministic: bool = True) -> Vertex:
    recovery = Recovery(guarantee=guarantee)
    return Vertex("words", Kind.OPERATOR, 1, stateful=True, deterministic=deterministic, recovery=recovery)


UNREPEATABLE = {
    "rollback": vertex(Guarantee.ROLLBACK),
    "gap": vertex(Guarantee.GAP),
    "amnesia": vertex(Guarantee.AMNESIA),
    "not deterministic": vertex(deterministic=False),
}


@pytest.mark.parametrize("case", UNREPEATABLE)
def test_a_replica_that_was_given_up_publishes_nothing_after_its_successor_has_begun(case: str, tmp_path: Path) -> None:
    old, new = (Publisher(tmp_path, generation, UNREPEATABLE[case]) for generation in (1, 2))
    old.outbox.take_over()
    old.outbox.send()
    assert old.make(0)
    new.outbox.take_over()
    with pytest.raises(Stopped):
        old.make(1)
    with pytest.raises(Stopped):
        old.outbox.publish(a_bag(1))
    assert old.outbox.fenced
    new.outbox.send()
    assert new.make(1), "nobody else has published it"
    assert old.durable == new.durable == [True], "nothing could recompute it"


def test_where_replays_are_identical_both_may_publish(tmp_path: Path) -> None:
    old, new = (Publisher(tmp_path, generation, vertex()) for generation in (1, 2))
    for one in (old, new):
        one.outbox.take_over()
        one.outbox.send()
    assert old.make(0)
    assert new.make(1)
    assert old.make(2)
    assert not old.outbox.fenced


# -- what a secondary holds back


def test_a_secondary_holds_back_what_its_primary_has_not_published(tmp_path: Path) -> None:
    primary, secondary = (Publisher(tmp_path, generation, vertex()) for generation in (1, 2))
    primary.outbox.send()
    for epoch in range(3):
        primary.publish(a_bag(epoch), durable=False)
    for epoch in range(4):
        assert not secondary.outbox.put(a_bag(epoch))
    assert len(secondary.outbox) == 1


@pytest.mark.parametrize("torn", [False, True])
def test_a_secondary_holds_back_what_a_power_cut_took_before_a_later_bag(torn: bool, tmp_path: Path) -> None:
    """The primary would make it again. If it fails before that, nobody else has the bag."""
    primary, secondary = (Publisher(tmp_path, generation, vertex()) for generation in (1, 2))
    log = primary.context.log
    for epoch in range(3):
        primary.publish(a_bag(epoch), durable=False)
    taken = next(path for path in (tmp_path / "log").rglob("*.bag") if int(path.stem) == 1)
    taken.write_bytes(b"") if torn else taken.unlink()
    for epoch in range(4):
        secondary.outbox.put(a_bag(epoch))
    assert len(secondary.outbox) == 2
    secondary.outbox.send()
    assert log.first_missing(WORDS) == 4
    assert log.fetch(WORDS, 1) is not None


def test_a_secondary_holds_nothing_back_that_all_readers_have(tmp_path: Path) -> None:
    primary, secondary = (Publisher(tmp_path, generation, vertex()) for generation in (1, 2))
    log = primary.context.log
    for epoch in range(3):
        primary.publish(a_bag(epoch), durable=False)
    log.acknowledge(COUNTS, WORDS, 1)
    assert log.trim(WORDS, [COUNTS]) == 1
    for epoch in range(3):
        secondary.outbox.put(a_bag(epoch))
    assert len(secondary.outbox) == 0
