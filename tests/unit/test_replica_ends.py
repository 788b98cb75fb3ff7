"""What sources and sinks do next, what becomes of a bag, and how long a comeback took: rules on plain values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from understudy.control.replica.actions import AwaitInput, Wait
from understudy.control.replica.bags import Fate, differs, fate
from understudy.control.replica.comeback import Comeback
from understudy.control.replica.ends import (
    Make,
    MakeEmpty,
    SinkView,
    Skip,
    SourceView,
    Write,
    first_of_source,
    next_of_sink,
    next_of_source,
)

DUE = SourceView(epoch=5, due_s=0.0, has_room=True)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, Make(5)),
        ({"due_s": 0.3}, Wait(0.3)),
        ({"due_s": -1.0}, Make(5)),
        ({"has_room": False}, Wait(0.01)),
        ({"goal": 5}, Wait(0.05)),
        ({"goal": 6}, Make(5)),
        ({"ended_at": 3}, Wait(0.05)),
        ({"ended_at": 3, "goal": 6}, MakeEmpty(5)),
        ({"ended_at": 0, "goal": 6}, MakeEmpty(5)),
    ],
)
def test_a_source_makes_an_epoch_when_it_is_due(change: dict[str, Any], expected: object) -> None:
    assert next_of_source(replace(DUE, **change)) == expected


@pytest.mark.parametrize(("missing", "rewind", "first"), [(7, None, 7), (7, 3, 3), (7, 9, 7), (0, 0, 0)])
def test_where_a_source_begins(missing: int, rewind: int | None, first: int) -> None:
    assert first_of_source(missing, rewind) == first


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (SinkView(5, None, True), Write(5)),
        (SinkView(5, 5, True), Wait(0.05)),
        (SinkView(5, 6, True), Write(5)),
        (SinkView(5, None, False), AwaitInput(5, 0.2)),
        (SinkView(5, None, False, delivered=4), AwaitInput(5, 0.2)),
        (SinkView(5, None, False, delivered=5), Skip(6)),
        (SinkView(5, None, False, delivered=9), Skip(10)),
    ],
)
def test_a_sink_writes_what_is_there_and_skips_what_a_predecessor_delivered(view: SinkView, expected: object) -> None:
    assert next_of_sink(view) == expected


# -- bags


@dataclass(frozen=True)
class Ready:
    sends: bool = True
    fenced: bool = False
    published: bool = False

    def is_published(self, epoch: int) -> bool:
        assert epoch == 5
        return self.published


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (Ready(), Fate.PUBLISH),
        (Ready(fenced=True), Fate.HALT),
        (Ready(sends=False), Fate.SPOOL),
        (Ready(sends=False, published=True), Fate.COMPARE),
    ],
)
def test_what_becomes_of_a_bag(view: Ready, expected: Fate) -> None:
    assert fate(5, view) is expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, False),
        ({"made": "b"}, True),
        ({"made": "b", "lost": True}, False),
        ({"first": False}, False),
        ({"first": False, "stateful": True, "deterministic": False}, True),
        ({"first": True, "stateful": True, "deterministic": False}, False),
        ({"first": False, "stateful": False, "deterministic": False}, False),
        ({"first": False, "stateful": True, "deterministic": True}, False),
    ],
)
def test_when_a_replay_differs_from_what_was_published(change: dict[str, Any], expected: bool) -> None:
    usual: dict[str, Any] = {"made": "a", "published": "a", "first": True, "lost": False}
    usual |= {"stateful": False, "deterministic": True}
    assert differs(**(usual | change)) is expected


# -- comebacks


def test_the_steps_of_a_comeback_add_up_to_the_time_it_took() -> None:
    comeback = Comeback.begin(now=100.0, known=6)
    comeback = comeback.stepped("read_checkpoint", 0.5, now=100.5).stepped("deploy", 1.0, now=101.5)
    comeback = comeback.wired(now=102.0)
    assert comeback.wired(now=103.0) is comeback, "only the first input counts"
    comeback = comeback.progressed(5, now=102.5, wall=0.0).progressed(6, now=103.0, wall=0.0)
    assert not comeback.steps.done, "others had finished these"
    comeback = comeback.progressed(7, now=103.25, wall=77.0)
    steps = comeback.steps
    assert (steps.read_checkpoint, steps.deploy, steps.wire_receive) == (0.5, 1.0, 0.5)
    assert (steps.replay, steps.replayed, steps.first_bag, steps.done_at) == (1.0, 2, 0.25, 77.0)
    assert comeback.progressed(8, now=110.0, wall=80.0) is comeback, "it is over"


def test_waiting_for_input_that_nobody_has_made_is_no_part_of_coming_back() -> None:
    comeback = Comeback.begin(now=100.0, known=6).wired(now=100.5).progressed(6, now=101.0, wall=0.0)
    comeback = comeback.idled(since=101.0, now=104.0).progressed(7, now=104.5, wall=9.0)
    assert (comeback.steps.idle, comeback.steps.first_bag, comeback.steps.replay) == (3.0, 0.5, 0.5)
    assert comeback.idled(since=104.5, now=109.0) is comeback


def test_idle_time_before_the_comeback_began_does_not_count() -> None:
    comeback = Comeback.begin(now=100.0, known=6)
    assert comeback.idled(since=90.0, now=101.0).steps.idle == 1.0
    assert comeback.idled(since=90.0, now=100.0) is comeback
    assert comeback.idled(since=100.0, now=102.0).wired(now=102.5).steps.wire_receive == 0.5


def test_whoever_published_at_the_head_already_was_never_away() -> None:
    steps = Comeback.begin(now=100.0, known=6).seamless(wall=3.0).steps
    assert (steps.done, steps.seamless, steps.done_at) == (True, True, 3.0)


def test_only_an_epoch_after_what_is_known_ends_a_comeback() -> None:
    comeback = Comeback.begin(now=100.0, known=-1).knowing(6)
    assert not comeback.progressed(6, 101.0, 0.0).steps.done
    assert comeback.progressed(7, 101.0, 0.0).steps.done
