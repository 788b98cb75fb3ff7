"""Many policies want to change a slice at once: who is heard, and what becomes of the others."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations

import pytest
from tests.controllers import settled
from tests.snapshots import COUNTS, DETECTOR, LAYOUT, OTHER, WORDS, assigns, decided, healthy, node

from understudy.control.cluster.controlling import surroundings
from understudy.control.cluster.decide import decide
from understudy.control.cluster.instructions import Assign, DeployReplica, LoseNode
from understudy.control.cluster.requests import check_switch
from understudy.control.cluster.snapshot import Ended, Measured, Memory, Snapshot
from understudy.control.cluster.suggestions import Origin, Suggestion, arbitrate
from understudy.control.schemes.costs import Usage
from understudy.control.schemes.history import Error
from understudy.errors import InvalidInput
from understudy.model.layout import Layout
from understudy.model.names import SliceId
from understudy.model.recovery import Recovery, Scheme
from understudy.model.snapshot import Assignment

BUSY = Usage(cpu=0.5, received_bps=1e6, published_bps=2e5, changed_bps=1e5)


def suggestion(origin: Origin, slice_id: SliceId = COUNTS) -> Suggestion:
    return Suggestion(origin, Assignment(slice_id, f"node-{origin}", 1), f"{origin.name} of {slice_id}")


# -- the arbiter


@pytest.mark.parametrize(("first", "second"), list(combinations(Origin, 2)))
def test_of_two_suggestions_the_one_with_precedence_is_accepted(first: Origin, second: Origin) -> None:
    for order in permutations((suggestion(first), suggestion(second))):
        ruling = arbitrate(order)
        assert ruling.accepted == {COUNTS: suggestion(first)}
        assert ruling.declined == (suggestion(second),)


def test_at_most_one_change_for_every_slice() -> None:
    everything = [suggestion(origin, slice_id) for slice_id in (COUNTS, WORDS) for origin in reversed(Origin)]
    ruling = arbitrate(everything)
    assert ruling.accepted == {s: suggestion(Origin.RECOVERY, s) for s in (COUNTS, WORDS)}
    assert len(ruling.declined) == len(everything) - 2


def test_among_equals_the_earlier_one_is_accepted() -> None:
    first, second = suggestion(Origin.SECONDARY), replace(suggestion(Origin.SECONDARY), reason="another")
    assert arbitrate([first, second]).accepted == {COUNTS: first}


def test_nothing_is_declined_without_a_rival() -> None:
    ruling = arbitrate([suggestion(Origin.CONTROLLER), suggestion(Origin.DRAIN, WORDS)])
    assert set(ruling.accepted) == {COUNTS, WORDS}
    assert ruling.declined == ()


# -- requests of people


def requesting(base: Snapshot, scheme: Scheme = Scheme.DEPLOYED, slice_id: SliceId = COUNTS) -> Snapshot:
    return replace(base, memory=base.memory.requested(slice_id, scheme))


def host(base: Snapshot, slice_id: SliceId) -> str:
    return base.assigned[slice_id].node


def test_a_request_is_carried_out_by_the_next_decision_and_then_forgotten() -> None:
    decision = decide(requesting(healthy()))
    (assign,) = [i for i in decision.instructions if isinstance(i, Assign)]
    assert (assign.origin, assign.assignment.scheme) == (Origin.REQUEST, Scheme.DEPLOYED)
    assert not decision.memory.requests


def test_the_last_request_about_a_slice_counts() -> None:
    base = requesting(requesting(healthy()), Scheme.ACTIVE_STANDBY)
    assert assigns(decided(base))[COUNTS].scheme is Scheme.ACTIVE_STANDBY


def test_a_switch_that_was_asked_for_while_its_node_is_lost_waits_for_the_recovery() -> None:
    base = requesting(healthy())
    lost = host(base, COUNTS)
    dying = replace(base, nodes=tuple(replace(v, silent_s=99.0) if v.name == lost else v for v in base.nodes))
    decision = decide(dying)
    assert [i.node for i in decision.instructions if isinstance(i, LoseNode)] == [lost]
    moved = assigns(decision.instructions)
    assert (moved[COUNTS].scheme, moved[COUNTS].generation) == (Scheme.PASSIVE_REPLICATION, 2), "it is placed first"
    assert any(isinstance(i, DeployReplica) and i.deploy.slice == COUNTS for i in decision.instructions)
    assert decision.memory.requests == {COUNTS: Scheme.DEPLOYED}, "and is not forgotten"
    after = tuple(moved.get(a.slice, a) for a in base.assignments)
    rest = tuple(view for view in base.nodes if view.name != lost)
    later = decide(replace(base, nodes=rest, assignments=after, memory=decision.memory))
    assert assigns(later.instructions)[COUNTS].scheme is Scheme.DEPLOYED
    assert not later.memory.requests


def test_a_request_that_changes_nothing_is_forgotten() -> None:
    decision = decide(requesting(healthy(), Scheme.PASSIVE_REPLICATION))
    assert decision.instructions == ()
    assert not decision.memory.requests


def test_a_request_that_cannot_be_had_any_more_is_dropped() -> None:
    base = healthy()
    diverged = tuple(replace(a, passive=True) if a.slice == COUNTS else a for a in base.assignments)
    decision = decide(requesting(replace(base, assignments=diverged), Scheme.ACTIVE_STANDBY))
    assert decision.instructions == ()
    assert not decision.memory.requests


@pytest.mark.parametrize("slice_id", [SliceId("lines", 0), SliceId("out", 0)])
def test_only_operators_have_a_scheme(slice_id: SliceId) -> None:
    with pytest.raises(InvalidInput, match="cannot be switched"):
        check_switch(slice_id, Scheme.DEPLOYED, LAYOUT, healthy().assigned)


# -- the controller


def with_objective(objective: str = "20 s") -> Layout:
    vertices = LAYOUT.vertices
    return Layout(
        tuple(replace(v, recovery=Recovery(objective=objective)) if v.name == "counts" else v for v in vertices)
    )


def controlled(at: float = 100.0, scheme: Scheme = Scheme.ACTIVE_STANDBY) -> Snapshot:
    """Two slices with an objective, of which enough is known. Under most schemes their secondaries are missing."""
    base = healthy(layout=with_objective(), at=at)
    strong = tuple(replace(a, scheme=scheme) if a.slice in (COUNTS, OTHER) else a for a in base.assignments)
    measured = {s: Measured(settled(name=str(s)), BUSY) for s in (COUNTS, OTHER)}
    return replace(base, assignments=strong, nodes=(*base.nodes, node("node-3")), measured=measured)


def test_what_the_controller_chooses_is_suggested_and_remembered() -> None:
    decision = decide(controlled(scheme=Scheme.PASSIVE_REPLICATION))
    chosen = [i for i in decision.instructions if isinstance(i, Assign) and i.choice is not None]
    assert {i.assignment.slice for i in chosen} == {COUNTS, OTHER}
    assert all(i.assignment.scheme is i.choice.scheme for i in chosen if i.choice is not None)
    assert set(decision.memory.controller.held) == {str(COUNTS), str(OTHER)}
    assert decision.memory.looked_at == 100.0


def test_what_the_controller_may_not_have_now_it_does_not_remember() -> None:
    """Missing secondaries come first; the controller chooses again at its next turn."""
    decision = decide(controlled())
    assert {one.slice for one in decision.declined if one.origin is Origin.CONTROLLER} == {COUNTS, OTHER}
    assert not decision.memory.controller.held


def test_the_controller_looks_every_half_second() -> None:
    first = decide(controlled())
    soon = decide(replace(controlled(100.4), memory=first.memory))
    assert soon.memory.looked_at == 100.0
    late = decide(replace(controlled(100.6), memory=first.memory))
    assert late.memory.looked_at == 100.6


def test_a_broken_promise_is_learned_even_if_nothing_can_be_decided() -> None:
    held, name = decide(controlled(scheme=Scheme.PASSIVE_REPLICATION)).memory, str(COUNTS)
    missed = Error(Scheme.DEPLOYED, raw_s=1.0, predicted_s=1.0, actual_s=30.0, objective_s=20.0)
    base = replace(controlled(), nodes=(), memory=held, ended=(Ended(COUNTS, missed, 100.0),))
    assert decide(base).memory.controller.held[name].penalty.amount > 0


def test_surroundings_that_do_not_change_leave_a_history_as_it_is() -> None:
    base = controlled()
    layout = with_objective()
    around = surroundings(base.assignments, base.nodes, layout, DETECTOR)
    placed = around.around(base.measured[COUNTS].history, base.assigned[COUNTS], layout["counts"])
    assert around.around(placed, base.assigned[COUNTS], layout["counts"]) is placed
    hosted = [a.node for a in base.assignments if a.slice.operator in ("words", "counts")]
    assert placed.neighbours == hosted.count(host(base, COUNTS)) - 1


def test_a_decision_gives_its_reasons() -> None:
    decision = decide(requesting(healthy()))
    assert decision.reasons[0] == "counts[0]: deployed"
    assert decide(replace(healthy(), memory=Memory())).reasons == ()
