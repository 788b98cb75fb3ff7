"""The plan's part of a decision: when it is adopted, and what it means for every slice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.snapshots import COUNTS, LAYOUT, LINES, OTHER, WORDS, assigns, decided, healthy, node, replica, snapshot

from understudy.control.cluster.controlling import _watched
from understudy.control.cluster.decide import decide
from understudy.control.cluster.instructions import AdoptPlan
from understudy.control.cluster.planned import at_most, check_plan, first_scheme, follow
from understudy.control.cluster.snapshot import Measured, Memory, Snapshot
from understudy.control.schemes.costs import Usage
from understudy.control.schemes.history import History
from understudy.errors import InvalidInput
from understudy.model.capabilities import OFF, ROWS
from understudy.model.config import DEFAULTS
from understudy.model.layout import Layout
from understudy.model.messages import Steps
from understudy.model.names import SliceId
from understudy.model.recovery import Recovery, Scheme
from understudy.model.replication import Proposal, ReplicaPlan
from understudy.model.snapshot import Assignment, Secondary

LIMITS = DEFAULTS.plan
ACTIVE = Scheme.ACTIVE_STANDBY


def plan(*slices: SliceId, fidelity: float = 0.5, **changes: Any) -> ReplicaPlan:
    return ReplicaPlan(budget=len(slices), slices=slices, fidelity=fidelity, **changes)


def adopted(given: Snapshot) -> AdoptPlan | None:
    return next((one for one in decided(given) if isinstance(one, AdoptPlan)), None)


def proposing(gain: float, current: ReplicaPlan | None = None, **changes: Any) -> Snapshot:
    """Another plan is proposed, long after the present one was adopted."""
    current = current or plan(COUNTS)
    proposal = Proposal(plan=plan(OTHER, fidelity=0.3 + gain), basis=current, before=0.3)
    usual: dict[str, Any] = {"proposal": proposal, "memory": Memory(plan=current), "age_s": 1000.0, "planned": True}
    return healthy(**(usual | changes))


# -- which plan


def test_the_first_plan_is_adopted_and_remembered() -> None:
    given = healthy(proposal=Proposal(plan=plan(COUNTS, LINES), note="a note"), planned=True, age_s=7.0)
    found = adopted(given)
    assert found is not None
    assert found.proposal.plan == plan(COUNTS, LINES, age_s=7.0)
    assert decide(given).memory.plan == found.proposal.plan
    assert found.reason == (
        "plan for 2 replicas (exact, optimal): counts[0], lines[0] shall have working secondaries; "
        "predicted output fidelity 0.000 before, 0.500 after; a note"
    )


def test_a_plan_is_adopted_even_while_no_node_can_carry_it_out() -> None:
    given = snapshot(node("node-1", ready=False), proposal=Proposal(plan=plan(COUNTS)), planned=True)
    assert adopted(given) is not None
    assert decide(given).memory.plan is not None


def test_another_plan_says_what_it_changes() -> None:
    found = adopted(proposing(0.2))
    assert found is not None
    assert "counts[1] shall have working secondaries, counts[0] no longer; " in found.reason
    assert "fidelity 0.300 before, 0.500 after" in found.reason


@pytest.mark.parametrize(("gain", "changes"), [(LIMITS.threshold - 0.01, False), (LIMITS.threshold + 0.01, True)])
def test_another_plan_must_gain_more_than_the_threshold(gain: float, changes: bool) -> None:
    assert (adopted(proposing(gain)) is not None) is changes


@pytest.mark.parametrize(("age_s", "changes"), [(LIMITS.cool_down_s - 1, False), (LIMITS.cool_down_s, True)])
def test_the_plan_changes_at_most_once_in_its_cool_down(age_s: float, changes: bool) -> None:
    current = plan(COUNTS, age_s=1000.0)
    assert (adopted(proposing(0.5, current, age_s=1000.0 + age_s)) is not None) is changes


def test_a_plan_that_a_person_named_is_not_adapted() -> None:
    assert adopted(proposing(0.5, plan(COUNTS, fixed=True))) is None


def test_a_proposal_that_was_computed_for_another_plan_is_dropped() -> None:
    assert adopted(proposing(0.5, memory=Memory(plan=plan(WORDS)))) is None
    assert adopted(proposing(0.5, memory=Memory())) is None


def test_while_a_slice_is_away_the_plan_stays() -> None:
    given = proposing(0.5)
    away = tuple(
        replace(view, replicas=tuple(r.model_copy(update={"steps": Steps(), "up_s": 1.0}) for r in view.replicas))
        for view in given.nodes
    )
    assert adopted(replace(given, nodes=away)) is None


# -- what it means for a slice


def run(*planned: SliceId, schemes: dict[SliceId, Scheme], established: tuple[SliceId, ...] = ()) -> Snapshot:
    """All slices on node-1, secondaries on node-2; those that are established do what their scheme asks for."""
    assignments, secondaries = [], []
    for slice_id in LAYOUT.slices:
        scheme = schemes.get(slice_id, Scheme.PASSIVE_REPLICATION)
        secondary = Secondary("node-2", 2) if ROWS[scheme] != OFF else None
        assignments.append(Assignment(slice_id, "node-1", 1, scheme=scheme, secondary=secondary, issued=2))
        if secondary is not None:
            row = ROWS[scheme] if slice_id in established else OFF
            secondaries.append(replica(slice_id, 2, primary=False, capabilities=row, asked=ROWS[scheme]))
    primary = node("node-1", *(replica(s) for s in LAYOUT.slices))
    return snapshot(
        primary,
        node("node-2", *secondaries),
        assignments=tuple(assignments),
        memory=Memory(plan=plan(*planned)),
        planned=True,
    )


def schemes_after(given: Snapshot) -> dict[SliceId, Scheme]:
    """What the plan suggests."""
    return {one.slice: one.assignment.scheme for one in follow(given.assignments, given, LAYOUT)}


def test_planned_operators_get_a_working_secondary_and_sources_do_not() -> None:
    given = run(COUNTS, LINES, schemes={})
    assert schemes_after(given) == {COUNTS: ACTIVE}
    assert {s: a.scheme for s, a in assigns(decided(given)).items()} == {COUNTS: ACTIVE}


def test_a_working_secondary_goes_only_after_its_successor_works() -> None:
    schemes = {COUNTS: ACTIVE, OTHER: ACTIVE}
    assert schemes_after(run(OTHER, schemes={COUNTS: ACTIVE}, established=(COUNTS,))) == {OTHER: ACTIVE}
    assert schemes_after(run(OTHER, schemes=schemes, established=(COUNTS,))) == {}
    changed = schemes_after(run(OTHER, schemes=schemes, established=(COUNTS, OTHER)))
    assert changed == {COUNTS: Scheme.PASSIVE_REPLICATION}


def test_a_planned_slice_that_is_down_keeps_the_others_as_they_are() -> None:
    given = run(OTHER, schemes={COUNTS: ACTIVE, OTHER: ACTIVE}, established=(COUNTS, OTHER))
    rest = [a for a in given.assignments if a.slice != OTHER]
    assert list(follow(rest, given, LAYOUT)) == []


def test_passive_schemes_of_slices_that_are_not_planned_are_left_alone() -> None:
    hot = {COUNTS: Scheme.PASSIVE_STANDBY_HOT, WORDS: Scheme.DEPLOYED}
    assert schemes_after(run(schemes=hot, established=(COUNTS, WORDS))) == {}


def test_what_a_person_switched_is_left_alone_until_the_next_plan() -> None:
    given = run(COUNTS, schemes={OTHER: ACTIVE}, established=(OTHER,))
    memory = given.memory.requested(COUNTS, Scheme.DEPLOYED).requested(OTHER, ACTIVE)
    assert schemes_after(replace(given, memory=memory)) == {}
    proposal = Proposal(plan=plan(WORDS, fidelity=0.9), basis=memory.plan, before=0.1)
    changing = replace(given, memory=memory, proposal=proposal, age_s=1e4)
    assert not decide(changing).memory.held
    assert decide(replace(changing, proposal=None)).memory.held == {COUNTS, OTHER}


def test_an_operator_that_may_not_work_twice_gets_the_most_it_can_have() -> None:
    given = run(COUNTS, schemes={})
    distrusted = tuple(replace(a, passive=True) if a.slice == COUNTS else a for a in given.assignments)
    assert schemes_after(replace(given, assignments=distrusted)) == {COUNTS: Scheme.PASSIVE_STANDBY_COLD}


def test_the_plan_says_which_of_the_two_working_schemes() -> None:
    given = run(schemes={})
    both = Memory(plan=plan(COUNTS, scheme=Scheme.ACTIVE_REPLICATION))
    assert schemes_after(replace(given, memory=both)) == {COUNTS: Scheme.ACTIVE_REPLICATION}


@pytest.mark.parametrize(
    ("recovery", "for_all", "expected"),
    [
        (Recovery(), None, Scheme.PASSIVE_REPLICATION),
        (Recovery(scheme="active_replication"), None, Scheme.PASSIVE_STANDBY_HOT),
        (Recovery(objective="1 s"), None, Scheme.PASSIVE_STANDBY_HOT),
        (Recovery(), Scheme.ACTIVE_STANDBY, Scheme.PASSIVE_STANDBY_HOT),
        (Recovery(scheme="active_standby"), Scheme.DEPLOYED, Scheme.DEPLOYED),
    ],
)
def test_who_is_not_planned_has_no_working_secondary(
    recovery: Recovery, for_all: Scheme | None, expected: Scheme
) -> None:
    vertex = replace(LAYOUT["counts"], recovery=recovery)
    assert first_scheme(vertex, snapshot(scheme=for_all, planned=True)) is expected
    assert at_most(ACTIVE, snapshot(planned=False)) is ACTIVE, "without a plan nothing is limited"


def test_the_controller_leaves_planned_slices_to_the_plan_and_stays_below_two_that_work() -> None:
    vertices = tuple(
        replace(v, recovery=Recovery(objective="1 s")) if v.name == "counts" else v for v in LAYOUT.vertices
    )
    measured = {s: Measured(History(str(s)), Usage(epoch_s=1.0)) for s in (COUNTS, OTHER)}
    given = replace(run(COUNTS, schemes={}), measured=measured)
    assert [(one.slice, one.strongest) for one in _watched(given, Layout(vertices))] == [
        ("counts[1]", Scheme.PASSIVE_STANDBY_HOT)
    ]


# -- what people may ask for


def test_a_plan_names_slices_that_run_and_not_more_than_its_budget() -> None:
    assert check_plan([COUNTS, LINES], 2, LAYOUT) is LAYOUT
    with pytest.raises(InvalidInput, match="2 slices are planned with a budget of 1"):
        check_plan([COUNTS, LINES], 1, LAYOUT)
    with pytest.raises(InvalidInput, match=r"out\[0\] cannot be planned"):
        check_plan([SliceId("out", 0)], 1, LAYOUT)
    with pytest.raises(InvalidInput, match="wait until data flows"):
        check_plan([], 1, None)
