"""The order in which the slices of a lost domain come back, and how many at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.snapshots import COUNTS, LAYOUT, OTHER, WORDS, assigns, decided, node, replica, snapshot

from understudy.control.cluster.queueing import at_once, in_order
from understudy.control.cluster.snapshot import Memory, Snapshot
from understudy.model.config import DEFAULTS, Config
from understudy.model.layout import Kind
from understudy.model.messages import Steps
from understudy.model.names import SliceId
from understudy.model.replication import ReplicaPlan
from understudy.model.snapshot import Assignment

DEAD = {"dead-1": "rack-1", "dead-2": "rack-1"}
OPERATORS = LAYOUT.of_kind(Kind.OPERATOR)


def limited(at_once: int | None, master: str = "local[1]") -> Config:
    recovery = DEFAULTS.recovery.model_copy(update={"at_once": at_once})
    return DEFAULTS.model_copy(
        update={"recovery": recovery, "cluster": DEFAULTS.cluster.model_copy(update={"master": master})}
    )


def bereft(*planned: SliceId, **changes: Any) -> Snapshot:
    """All slices were on two nodes of a domain that was lost; two other nodes are left."""
    assignments = tuple(Assignment(s, ("dead-1", "dead-2")[n % 2], 1) for n, s in enumerate(LAYOUT.slices))
    plan = ReplicaPlan(budget=len(planned), slices=planned, fidelity=0.5)
    usual: dict[str, Any] = {"assignments": assignments, "lost_together": DEAD, "memory": Memory(plan=plan)}
    return snapshot(node("node-3"), node("node-4"), **({"config": limited(1)} | usual | changes))


def placed(given: Snapshot) -> list[SliceId]:
    """The operator slices that are placed in this decision, in their order."""
    found, before = assigns(decided(given)), given.assigned
    return [s for s in found if s in OPERATORS and (s not in before or found[s].node != before[s].node)]


def test_planned_slices_first_then_upstream_before_downstream() -> None:
    given = bereft(OTHER)
    expected = [str(s) for s in in_order(LAYOUT.slices, given, LAYOUT)]
    assert expected == ["counts[1]", "lines[0]", "lines[1]", "words[0]", "words[1]", "counts[0]", "out[0]"]


@pytest.mark.parametrize(("most", "count"), [(1, 1), (2, 2), (9, len(OPERATORS))])
def test_so_many_at_once_and_sources_and_sinks_besides(most: int, count: int) -> None:
    given = bereft(OTHER, config=limited(most))
    found = assigns(decided(given))
    assert placed(given) == list(in_order(OPERATORS, given, LAYOUT))[:count]
    assert {s for s in found if s not in OPERATORS} == set(LAYOUT.slices) - set(OPERATORS)


def test_the_next_one_follows_when_one_is_back() -> None:
    given = bereft(OTHER)
    first = tuple(assigns(decided(given)).get(a.slice, a) for a in given.assignments)

    def after(*, back: bool) -> Snapshot:
        nodes = tuple(
            node(name, *(replica(a.slice, a.generation, steps=Steps(done=back)) for a in first if a.node == name))
            for name in ("node-3", "node-4")
        )
        return replace(given, assignments=first, nodes=nodes)

    assert placed(after(back=False)) == []
    assert placed(after(back=True)) == [WORDS]


def test_slices_of_a_node_that_was_lost_alone_do_not_wait() -> None:
    assert set(placed(bereft(lost_together={}))) == set(OPERATORS)


def test_slices_that_were_never_placed_do_not_wait() -> None:
    assert set(placed(bereft(assignments=()))) == set(OPERATORS)


def test_a_slice_that_waits_for_bags_of_one_in_the_queue_does_not_hold_it_up() -> None:
    given = bereft()
    reader = Assignment(COUNTS, "node-3", 2, waits_for=(WORDS,))
    rest = tuple(replace(a, rewind=3, rewind_to=4) if a.slice == WORDS else a for a in given.assignments)
    others = tuple(a for a in rest if a.slice != COUNTS)
    assert placed(replace(given, assignments=(*others, reader))) == [WORDS]


def test_those_who_wait_are_left_alone_by_every_other_policy() -> None:
    """They have no node, and nobody may stumble over that: switches are asked for and rates propose a plan."""
    memory = Memory(plan=ReplicaPlan(budget=1, slices=(COUNTS,), fidelity=0.5)).requested(OTHER, "active_standby")  # type: ignore[arg-type]
    assert placed(bereft(memory=memory)) == [COUNTS]


@pytest.mark.parametrize(("master", "cores"), [("local[1]", 2), ("local[3]", 6), ("local[*]", 4), ("spark://host", 4)])
def test_the_cores_of_those_who_are_left(master: str, cores: int) -> None:
    assert at_once(bereft(config=limited(None, master))) == cores
