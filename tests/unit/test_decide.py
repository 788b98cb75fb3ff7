"""The rules of one tick, each alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.simulated.cluster import failure
from tests.snapshots import (
    COUNTS,
    DETECTOR,
    LINES,
    OTHER,
    WORDS,
    assigns,
    decided,
    failing,
    healthy,
    node,
    replica,
    snapshot,
)

from understudy.control.cluster.instructions import (
    CheckTopology,
    DeployReplica,
    FailRun,
    FinishRun,
    Instruction,
    LoseNode,
    SetGoal,
    StopReplica,
)
from understudy.control.cluster.snapshot import Snapshot
from understudy.model.config import DEFAULTS
from understudy.model.names import SliceId
from understudy.model.snapshot import Phase

MAX_FAILURES = DEFAULTS.recovery.max_failures
PATIENCE_S = DEFAULTS.cluster.start_s


def test_when_all_is_well_there_is_nothing_to_do() -> None:
    assert decided(healthy()) == ()


@pytest.mark.parametrize("phase", [Phase.FINISHED, Phase.FAILED])
def test_when_it_is_over_nothing_happens_any_more(phase: Phase) -> None:
    assert decided(replace(healthy(), phase=phase, nodes=())) == ()


# -- nodes


@pytest.mark.parametrize(
    ("connected", "silent_s", "dead"),
    [(True, 3.0, False), (True, 3.01, True), (False, 0.3, False), (False, 0.31, True), (False, -9.0, False)],
)
def test_silence(connected: bool, silent_s: float, dead: bool) -> None:
    view = node("node-1", connected=connected, silent_s=silent_s)
    assert DETECTOR.dead(view) is dead
    found = decided(snapshot(view))
    assert [i.node for i in found if isinstance(i, LoseNode)] == (["node-1"] if dead else [])


def test_a_loss_and_what_follows_from_it_are_one_decision() -> None:
    base = healthy()
    dead = replace(base.nodes[0], silent_s=99.0)
    lost, *rest = decided(replace(base, nodes=(dead, base.nodes[1]), replace=True))
    assert isinstance(lost, LoseNode)
    assert lost.replace
    assert tuple(rest) == decided(replace(base, nodes=base.nodes[1:], replace=True)), "as if the node had never been"
    assert set(assigns(tuple(rest))) == {a.slice for a in base.assignments if a.node == dead.name}
    deployed = {(i.node, i.deploy.slice) for i in rest if isinstance(i, DeployReplica)}
    assert deployed == {(a.node, a.slice) for a in assigns(tuple(rest)).values()}, "in the same decision"


def test_slices_of_a_lost_node_go_to_the_others_in_a_new_generation() -> None:
    base = healthy()
    left = replace(base, nodes=base.nodes[1:])
    moved = assigns(decided(left))
    assert set(moved) == {a.slice for a in base.assignments if a.node == "node-1"}
    assert all((a.node, a.generation) == ("node-2", 2) for a in moved.values())


@pytest.mark.parametrize("change", [{"connected": False}, {"ready": False}])
def test_nothing_goes_to_a_node_that_cannot_host(change: Any) -> None:
    base = healthy()
    weak = replace(base.nodes[1], replicas=(), **change)
    assert decided(replace(base, nodes=(weak,))) == ()


def test_a_node_that_came_back_is_told_to_stop_what_others_took_over() -> None:
    base = healthy()
    moved = tuple(replace(a, node="node-2", generation=2) for a in base.assignments)
    both = replace(base, assignments=moved)
    found = decided(both)
    assert {(i.node, i.slice) for i in found if isinstance(i, StopReplica)} == {
        (view.name, r.slice) for view in base.nodes for r in view.replicas
    }
    assert all(i.node == "node-2" for i in found if isinstance(i, DeployReplica))


def test_what_a_node_does_not_host_yet_is_deployed_again() -> None:
    base = healthy()
    forgetful = replace(base.nodes[0], replicas=base.nodes[0].replicas[1:])
    (found,) = decided(replace(base, nodes=(forgetful, base.nodes[1])))
    assert isinstance(found, DeployReplica)
    assert found.deploy.slice == base.nodes[0].replicas[0].slice


# -- gathering


@pytest.mark.parametrize(
    ("ready", "waited_s", "kind"),
    [
        (2, 1.0, CheckTopology),
        (3, 1.0, CheckTopology),
        (1, 1.0, None),
        (1, PATIENCE_S + 1, CheckTopology),
        (0, 1.0, None),
        (0, PATIENCE_S + 1, FailRun),
    ],
)
def test_gathering(ready: int, waited_s: float, kind: type[Instruction] | None) -> None:
    nodes = [node(f"node-{n}") for n in range(ready)] + [node("late", ready=False)]
    found = decided(snapshot(*nodes, phase=Phase.GATHERING, waited_s=waited_s))
    assert [type(i) for i in found] == ([kind] if kind else [])


def test_while_one_node_checks_no_other_is_asked() -> None:
    assert decided(snapshot(node("a"), node("b"), phase=Phase.CHECKING)) == ()


# -- goal and end


@pytest.mark.parametrize(
    ("goal", "delivered", "done"), [(3, 3, True), (3, 4, True), (4, 3, False), (None, 10**6, False)]
)
def test_the_run_ends_when_every_sink_has_delivered_the_goal(goal: int | None, delivered: int, done: bool) -> None:
    found = decided(healthy(goal=goal, delivered={"out": delivered}))
    assert [type(i) for i in found] == ([FinishRun] if done else [])


def with_sources(base: Snapshot, **changes: Any) -> Snapshot:
    nodes = tuple(
        replace(
            view,
            replicas=tuple(r.model_copy(update=changes) if r.slice.operator == "lines" else r for r in view.replicas),
        )
        for view in base.nodes
    )
    return replace(base, nodes=nodes)


def goals(base: Snapshot) -> list[int]:
    return [i.epochs for i in decided(base) if isinstance(i, SetGoal)]


def test_the_goal_is_the_end_of_the_longest_source() -> None:
    base = with_sources(healthy(goal=None), ended_at=7)
    assert goals(base) == [7]
    longer = replace(base.nodes[0], replicas=(base.nodes[0].replicas[0].model_copy(update={"ended_at": 9}),))
    assert goals(replace(base, nodes=(longer, base.nodes[1]))) == [9]
    assert goals(replace(base, nodes=base.nodes[1:])) == [], "the other source may be longer"
    assert goals(replace(base, goal=5)) == []


def test_a_run_of_limited_time_ends_with_what_its_sources_have_cut() -> None:
    assert goals(healthy(goal=None, left_s=0.1)) == []
    assert goals(healthy(goal=None, left_s=-0.1)) == [10]


@pytest.mark.parametrize("nodes", [0, 1])
def test_a_manager_that_comes_back_after_the_time_waits_for_the_sources(nodes: int) -> None:
    """Right after a restart it knows no replica; a goal of 0 would throw away what was delivered."""
    base = healthy(goal=None, left_s=-5.0, delivered={"out": 40})
    assert goals(replace(base, nodes=base.nodes[:nodes])) == []


def test_the_goal_is_never_below_what_was_delivered() -> None:
    """Sources that were just deployed again may be behind what they had cut before."""
    assert goals(with_sources(healthy(goal=None, left_s=-5.0, delivered={"out": 40}), epoch=3)) == [40]
    assert goals(with_sources(healthy(goal=None, left_s=-5.0), epoch=-1)) == []
    assert goals(with_sources(healthy(goal=None, left_s=-5.0, delivered={"out": 0}), epoch=-1, ended_at=0)) == [6]


# -- failures


def test_a_failed_replica_is_tried_again_where_it_is() -> None:
    found = assigns(decided(failing(healthy(), {COUNTS: failure()})))
    before = next(a for a in healthy().assignments if a.slice == COUNTS)
    assert found == {COUNTS: replace(before, generation=2, issued=2, failures=1)}


@pytest.mark.parametrize(("failures", "final", "ends"), [(MAX_FAILURES - 1, False, False), (MAX_FAILURES, False, True)])
def test_too_many_failures_end_the_run(failures: int, final: bool, ends: bool) -> None:
    base = healthy()
    tried = tuple(replace(a, failures=failures) for a in base.assignments)
    found = decided(failing(replace(base, assignments=tried), {COUNTS: failure()}))
    assert any(isinstance(i, FailRun) for i in found) is ends
    assert bool(assigns(found)) is not ends


def test_a_final_failure_ends_the_run_at_once() -> None:
    (found,) = decided(failing(healthy(), {COUNTS: failure(final=True), WORDS: failure()}))
    assert isinstance(found, FailRun)
    assert found.failure.final


def test_the_failure_of_an_old_replica_does_not_matter() -> None:
    base = healthy()
    newer = tuple(replace(a, generation=2) if a.slice == COUNTS else a for a in base.assignments)
    found = decided(failing(replace(base, assignments=newer), {COUNTS: failure(final=True)}))
    assert {type(i) for i in found} == {DeployReplica, StopReplica}


def test_a_damaged_bag_is_made_again_by_the_slice_it_came_from() -> None:
    found = assigns(decided(failing(healthy(), {COUNTS: failure(damaged=((WORDS, 4),))})))
    assert {s: (a.generation, a.rewind, a.failures, a.waits_for) for s, a in found.items()} == {
        COUNTS: (2, None, 0, (WORDS,)),
        WORDS: (2, 4, 0, ()),
    }


def test_all_damaged_bags_are_made_again_at_once() -> None:
    torn = failure(damaged=((WORDS, 4), (SliceId("words", 1), 5), (WORDS, 6), (WORDS, 7)))
    found = assigns(decided(failing(healthy(), {COUNTS: torn})))
    assert {s: (a.rewind, a.rewind_to) for s, a in found.items()} == {
        COUNTS: (None, -1),
        WORDS: (4, 7),
        SliceId("words", 1): (5, 5),
    }
    assert found[COUNTS].waits_for == (WORDS, SliceId("words", 1))


def spoilt(base: Snapshot, epoch: int, **changes: Any) -> tuple[Instruction, ...]:
    tried = tuple(replace(a, **changes) if a.slice == COUNTS else a for a in base.assignments)
    return decided(failing(replace(base, assignments=tried), {COUNTS: failure(damaged=((WORDS, epoch),))}))


def test_damage_is_no_failure_of_its_reader() -> None:
    found = assigns(spoilt(healthy(), 4, failures=MAX_FAILURES))
    assert found[COUNTS].failures == MAX_FAILURES
    assert (found[COUNTS].spoilt, found[COUNTS].spoilings) == ((WORDS, 4), 1)


def test_only_the_same_bag_damaged_again_and_again_ends_the_run() -> None:
    before = {"spoilt": (WORDS, 4), "spoilings": MAX_FAILURES}
    assert assigns(spoilt(healthy(), 5, **before))[COUNTS].spoilings == 1
    assert assigns(spoilt(healthy(), 4, **before | {"spoilings": MAX_FAILURES - 1}))[COUNTS].spoilings == MAX_FAILURES
    assert any(isinstance(i, FailRun) for i in spoilt(healthy(), 4, **before))


def test_bags_that_are_being_made_again_are_not_asked_for_twice() -> None:
    base = healthy()
    rewound = tuple(replace(a, rewind=2, rewind_to=6) if a.slice == WORDS else a for a in base.assignments)
    base = replace(base, assignments=rewound)
    assert WORDS not in assigns(spoilt(base, 4))
    later = assigns(spoilt(base, 7))[WORDS]
    assert (later.rewind, later.rewind_to) == (2, 7)


@pytest.mark.parametrize("epochs", [(4, 7), (7, 4)])
def test_of_several_damaged_bags_the_first_counts(epochs: tuple[int, int]) -> None:
    broken = {s: failure(damaged=((WORDS, e),)) for s, e in zip((COUNTS, OTHER), epochs, strict=True)}
    found = assigns(decided(failing(healthy(), broken)))
    assert (found[WORDS].generation, found[WORDS].rewind, found[WORDS].rewind_to) == (2, 4, 7)
    base = healthy()
    earlier = tuple(replace(a, rewind=2, rewind_to=2) if a.slice == WORDS else a for a in base.assignments)
    again = assigns(decided(failing(replace(base, assignments=earlier), broken)))
    assert again[WORDS].rewind == 2, "one that is not made yet is not forgotten"


def test_a_slice_that_failed_itself_and_has_to_rewind_does_both() -> None:
    broken = {COUNTS: failure(damaged=((WORDS, 4),)), WORDS: failure()}
    found = assigns(decided(failing(healthy(), broken)))
    assert (found[WORDS].generation, found[WORDS].rewind, found[WORDS].failures) == (2, 4, 1)


def test_a_slice_whose_node_is_lost_rewinds_on_another() -> None:
    base = failing(healthy(), {COUNTS: failure(damaged=((WORDS, 4),))})
    host = next(a.node for a in base.assignments if a.slice == COUNTS)
    moved = tuple(replace(a, node="gone") if a.slice == WORDS else a for a in base.assignments)
    found = assigns(decided(replace(base, assignments=moved)))
    assert found[WORDS].node in ("node-1", "node-2")
    assert (found[WORDS].generation, found[WORDS].rewind) == (2, 4)
    assert found[COUNTS].node == host


@pytest.mark.parametrize(("epoch", "ended"), [(3, False), (4, True), (5, True)])
def test_a_rewind_ends_when_the_bag_is_there_again(epoch: int, ended: bool) -> None:
    base = healthy()
    rewound = tuple(replace(a, rewind=3, rewind_to=4) if a.slice == WORDS else a for a in base.assignments)
    nodes = tuple(
        replace(view, replicas=tuple(replica(r.slice, epoch=epoch) for r in view.replicas)) for view in base.nodes
    )
    found = assigns(decided(replace(base, assignments=rewound, nodes=nodes)))
    assert [(a.rewind, a.generation) for a in found.values()] == ([(None, 1)] if ended else [])
    assert all(a.rewind_to == -1 for a in found.values())


def test_a_rewind_moves_along_when_the_node_is_lost() -> None:
    base = healthy()
    rewound = tuple(replace(a, rewind=4, node="gone") if a.slice == LINES else a for a in base.assignments)
    assert assigns(decided(replace(base, assignments=rewound)))[LINES].rewind == 4
