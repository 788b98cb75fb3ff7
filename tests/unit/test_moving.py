"""The rules of a move: what is suggested next, from an assignment and what replicas report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.snapshots import COUNTS, LAYOUT, LINES, healthy, node, replica, snapshot

from understudy.control.cluster.decide import decide
from understudy.control.cluster.deploying import deployments, hosts_of
from understudy.control.cluster.moving import advance, begin, may_work_twice, release
from understudy.control.cluster.secondaries import promoted, protection, successor
from understudy.control.cluster.snapshot import Snapshot
from understudy.control.cluster.suggestions import Origin, Suggestion
from understudy.model.capabilities import ALL, PAUSED, ROWS
from understudy.model.messages import Failure, ReplicaStatus, State
from understudy.model.recovery import Scheme
from understudy.model.snapshot import Assignment, Move, NodeView, Secondary

HOT = Scheme.PASSIVE_STANDBY_HOT
BROKEN = Failure(what="it broke", why="the test wants it", fix="none")
PRIMARY, WORKS = replica(COUNTS), {"primary": False, "capabilities": ALL, "asked": ALL}


def mover(generation: int = 3, **changes: Any) -> ReplicaStatus:
    return replica(COUNTS, generation, **(WORKS | changes))


def standby(generation: int = 2, **changes: Any) -> ReplicaStatus:
    return replica(COUNTS, generation, **({"primary": False, "capabilities": ROWS[HOT], "asked": ROWS[HOT]} | changes))


def given(assignment: Assignment, *nodes: NodeView, age_s: float = 10.0) -> Snapshot:
    """Only the slice in question, on nodes a, b and c."""
    return snapshot(*nodes, assignments=(assignment,), age_s=age_s)


def next_step(seen: Snapshot) -> Suggestion | None:
    found = list(advance(seen.assignments, seen, LAYOUT))
    assert all(one.origin is Origin.MOVE for one in found)
    return found[0] if found else None


def on_a(**changes: Any) -> Assignment:
    return replace(Assignment(COUNTS, "a", 1, moving=Move("c", since=9.0), issued=1), **changes)


A, B, C = node("a", PRIMARY), node("b"), node("c")


def test_first_a_working_replica_is_started_beside_the_primary() -> None:
    found = next_step(given(on_a(), A, B, C))
    assert found is not None
    after = found.assignment
    assert (after.moving, after.node) == (Move("c", since=9.0, generation=2), "a")
    deployed = dict(deployments(after, LAYOUT))
    assert (deployed["c"].capabilities, deployed["c"].primary, deployed["c"].ship_every) == (ALL, False, 0)
    assert hosts_of(after) == {"a": 1, "c": 2}


def test_a_secondary_on_the_target_is_the_mover() -> None:
    before = on_a(scheme=HOT, secondary=Secondary("c", 2), issued=2)
    found = next_step(given(before, A, B, node("c", standby())))
    assert found is not None
    assert (found.assignment.moving, found.assignment.secondary) == (Move("c", since=9.0, generation=2), None)


@pytest.mark.parametrize(
    "target",
    [
        node("c"),
        node("c", mover(2, capabilities=ROWS[HOT])),
        node("c", mover(2, epoch=3)),
        node("c", mover(2, state=State.STARTING)),
        node("c", mover(2), connected=False),
    ],
)
def test_it_takes_over_only_when_it_works_and_is_at_most_one_epoch_behind(target: NodeView) -> None:
    moving = on_a(moving=Move("c", since=9.0, generation=2))
    assert next_step(given(moving, A, B, target)) is None
    found = next_step(given(moving, A, B, node("c", mover(2, epoch=4))))
    assert found is not None
    after = found.assignment
    assert (after.node, after.generation, after.moving) == ("c", 2, None)


def test_a_state_that_covers_the_epoch_is_as_good_as_having_done_it() -> None:
    moving = on_a(moving=Move("c", since=9.0, generation=2))
    found = next_step(given(moving, A, B, node("c", mover(2, epoch=-1, synced_to=5))))
    assert found is not None
    assert found.assignment.node == "c"


def test_the_secondary_is_deployed_again_before_the_mover_takes_over() -> None:
    moving = on_a(scheme=HOT, secondary=Secondary("b", 2), moving=Move("c", since=9.0, generation=3), issued=3)
    late = given(moving, A, node("b", standby()), node("c", mover(late=True)))
    assert next_step(late) is None, "the mover could not take over, so the secondary stays"
    first = next_step(given(moving, A, node("b", standby()), node("c", mover())))
    assert first is not None
    after = first.assignment
    assert (after.secondary, after.node) == (Secondary("b", 4), "a")
    assert next_step(given(after, A, node("b"), node("c", mover()))) is None
    assert protection(after, given(after, A, node("b"), node("c", mover())).by_name) is HOT
    last = next_step(given(after, A, node("b", standby(4)), node("c", mover())))
    assert last is not None
    assert (last.assignment.node, last.assignment.generation) == ("c", 3)
    assert last.assignment.secondary == Secondary("b", 4)


@pytest.mark.parametrize("changes", [{"hasty": True}, {"since": -100.0}])
def test_a_mover_that_is_ready_does_not_wait_for_ever_for_a_secondary(changes: dict[str, Any]) -> None:
    move = replace(Move("c", since=9.0, generation=3), **changes)
    moving = on_a(scheme=HOT, secondary=Secondary("b", 2), moving=move, issued=3)
    found = next_step(given(moving, A, node("b", standby()), node("c", mover())))
    assert found is not None
    assert (found.assignment.node, found.assignment.secondary, found.assignment.issued) == ("c", None, 3)


def test_without_a_third_node_nobody_is_waited_for() -> None:
    moving = on_a(scheme=HOT, moving=Move("c", since=9.0, generation=2), issued=2)
    found = next_step(given(moving, A, node("c", mover(2))))
    assert found is not None
    assert found.assignment.node == "c"


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (None, "c is lost"),
        (node("c", mover(3), draining=True), "c is being drained"),
        (node("c", mover(3, state=State.FAILED, failure=BROKEN)), "on c, it broke"),
    ],
)
def test_a_move_is_given_up_when_its_target_is_none(target: NodeView | None, why: str) -> None:
    moving = on_a(scheme=HOT, secondary=Secondary("b", 2), moving=Move("c", since=9.0, generation=3), issued=3)
    found = next_step(given(moving, A, node("b", standby()), *([target] if target else [])))
    assert found is not None
    assert found.reason == f"{COUNTS} stays on a: {why}"
    after = found.assignment
    assert (after.moving, after.secondary, after.issued) == (None, Secondary("b", 2), 3)


def test_a_mover_that_was_the_secondary_is_the_secondary_again() -> None:
    moving = on_a(scheme=HOT, moving=Move("c", since=-100.0, generation=2), issued=2)
    found = next_step(given(moving, A, B, node("c", mover(2, epoch=0))))
    assert found is not None
    assert (found.assignment.secondary, found.assignment.moving) == (Secondary("c", 2), None)
    assert found.assignment.mishaps == 1
    gone = next_step(given(moving, A, B))
    assert gone is not None
    assert gone.assignment.secondary is None
    assert release(replace(moving, scheme=Scheme.PASSIVE_REPLICATION)).secondary is None


def test_what_is_on_its_way_back_is_left_alone() -> None:
    for changes in ({"rewind": 3, "rewind_to": 3}, {"waits_for": (LINES,)}):
        assert next_step(given(on_a(**changes), A, B, C)) is None
    again = node("a", replica(COUNTS, 2, steps={"done": False}))
    assert next_step(given(replace(on_a(), generation=2), again, B, C)) is None


# -- one replica at a time


def test_the_legacy_way_stops_ships_and_starts() -> None:
    move = Move("c", since=9.0, legacy=True)
    first = next_step(given(on_a(moving=move), A, B, C))
    assert first is not None
    assert first.assignment.moving == replace(move, paused_at=10.0)
    asked = dict(deployments(first.assignment, LAYOUT))["a"]
    assert (asked.capabilities, asked.primary) == (PAUSED, True)
    paused: dict[str, Any] = {"asked": PAUSED, "capabilities": PAUSED, "shipped_to": 5}
    for early in (paused | {"capabilities": ALL}, paused | {"shipped_to": 4}, paused | {"asked": ALL}):
        assert next_step(given(first.assignment, node("a", replica(COUNTS, **early)), B, C)) is None
    last = next_step(given(first.assignment, node("a", replica(COUNTS, **paused)), B, C))
    assert last is not None
    after = last.assignment
    assert (after.node, after.generation, after.moving) == ("c", 2, None)


def test_a_slice_is_not_stopped_for_ever() -> None:
    moving = on_a(moving=Move("c", since=9.0, legacy=True, paused_at=9.0))
    stuck = node("a", replica(COUNTS, asked=PAUSED, capabilities=PAUSED, shipped_to=1))
    assert next_step(given(moving, stuck, B, C, age_s=12.0)) is None
    found = next_step(given(moving, stuck, B, C, age_s=30.0))
    assert found is not None
    assert found.assignment.moving is None
    assert dict(deployments(found.assignment, LAYOUT))["a"].capabilities == ALL


def test_sources_are_started_there_at_once() -> None:
    move = begin(Assignment(LINES, "a", 1, issued=1), Move("c"), LAYOUT["lines"], 9.0)
    assert move.moving is not None
    assert move.moving.legacy
    found = next_step(given(move, node("a", replica(LINES)), B, C))
    assert found is not None
    assert (found.assignment.node, found.assignment.generation) == ("c", 2)


def test_who_may_work_twice() -> None:
    vertex, plain = LAYOUT["counts"], Assignment(COUNTS, "a", 1)
    assert may_work_twice(plain, vertex)
    assert not may_work_twice(replace(plain, passive=True), vertex)
    assert not may_work_twice(replace(plain, scheme=Scheme.NONE), vertex)
    assert not may_work_twice(plain, replace(vertex, deterministic=False))
    assert not may_work_twice(plain, LAYOUT["lines"])


def test_a_slice_that_turns_out_not_to_be_deterministic_moves_the_other_way() -> None:
    moving = on_a(passive=True, scheme=HOT, moving=Move("c", since=9.0, generation=2), issued=2)
    found = next_step(given(moving, A, B, node("c", mover(2))))
    assert found is not None
    assert found.assignment.moving == Move("c", since=9.0, legacy=True)
    assert found.assignment.secondary == Secondary("c", 2), "it still protects the slice"


# -- a secondary that goes elsewhere


def test_a_secondary_is_replaced_before_it_goes() -> None:
    before = on_a(scheme=HOT, secondary=Secondary("b", 2), moving=Move("c", since=9.0, primary=False), issued=2)
    first = next_step(given(before, A, node("b", standby()), C))
    assert first is not None
    deployed = dict(deployments(first.assignment, LAYOUT))
    assert (deployed["c"].capabilities, deployed["b"].capabilities) == (ROWS[HOT], ROWS[HOT])
    assert next_step(given(first.assignment, A, node("b", standby()), C)) is None
    last = next_step(given(first.assignment, A, node("b", standby()), node("c", standby(3))))
    assert last is not None
    assert (last.assignment.secondary, last.assignment.moving) == (Secondary("c", 3), None)
    unwanted = replace(first.assignment, scheme=Scheme.PASSIVE_REPLICATION)
    dropped = next_step(given(unwanted, A, node("b", standby()), node("c", standby(3))))
    assert dropped is not None
    assert dropped.assignment.moving is None


# -- what else happens to a slice that moves


def test_whoever_is_nearer_takes_over_for_a_lost_primary() -> None:
    moving = on_a(scheme=HOT, secondary=Secondary("b", 2), moving=Move("c", since=9.0, generation=3), issued=3)
    ready = {"b": node("b", standby()), "c": node("c", mover())}
    assert successor(moving, ready) == Secondary("c", 3)
    early = {"b": node("b", standby()), "c": node("c", mover(capabilities=ROWS[Scheme.DEPLOYED]))}
    assert successor(moving, early) == Secondary("b", 2)
    after = promoted(moving, Secondary("b", 2))
    assert (after.node, after.moving) == ("b", moving.moving), "the move goes on, from another node"
    after = promoted(moving, Secondary("c", 3))
    assert (after.node, after.secondary, after.moving) == ("c", None, None)
    later = replace(moving, secondary=Secondary("b", 4), issued=4)
    assert promoted(later, Secondary("c", 3)).secondary == Secondary("b", 4)
    assert promoted(later, Secondary("b", 4)).moving == replace(later.moving, generation=0)  # type: ignore[type-var]


def test_a_slice_that_is_placed_anew_begins_its_move_again() -> None:
    moving = on_a(moving=Move("c", since=9.0, generation=5), issued=5)
    after = moving.anew("b")
    assert (after.generation, after.moving) == (6, Move("c", since=9.0))
    there = next_step(given(moving.anew("c"), node("c", replica(COUNTS, 6)), B))
    assert there is not None
    assert there.assignment.moving is None
    assert moving.rested().moving is None


def test_a_recovery_goes_before_a_move() -> None:
    base = healthy()
    moving = tuple(
        replace(a, moving=Move("node-2", since=0.0)) if a.slice == COUNTS and a.node == "node-1" else a
        for a in base.assignments
    )
    lost = replace(base, nodes=tuple(n for n in base.nodes if n.name == "node-2"), assignments=moving)
    decision = decide(lost)
    assert all(getattr(i, "origin", Origin.RECOVERY) is Origin.RECOVERY for i in decision.instructions)
