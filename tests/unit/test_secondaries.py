"""Secondaries: where they go, when they take over, and when they do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.builders import word_count_layout
from tests.simulated.cluster import failure
from tests.snapshots import COUNTS, OTHER, WORDS, assigns, decided, failing, healthy, node, replica, snapshot

from understudy.control.cluster.deploying import deployments
from understudy.control.cluster.instructions import DeployReplica, StopReplica
from understudy.control.cluster.secondaries import (
    allowed,
    initial_scheme,
    protection,
)
from understudy.control.cluster.snapshot import Snapshot
from understudy.model.capabilities import ALL, LADDER, OFF, ROWS
from understudy.model.config import DEFAULTS
from understudy.model.layout import Kind, Vertex
from understudy.model.messages import State, Steps
from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee, Recovery, Scheme
from understudy.model.snapshot import Assignment, Secondary

MAX_MISHAPS = DEFAULTS.recovery.max_secondary_failures
REST_EPOCHS = DEFAULTS.recovery.rest_epochs

LAYOUT = word_count_layout()
HOT = Scheme.PASSIVE_STANDBY_HOT


def guarded(scheme: Scheme = HOT, host: str = "node-3", **changes: Any) -> Snapshot:
    """All is well, and counts[0] has a secondary on a third node that does what its scheme asks for."""
    base = healthy()
    assignments = tuple(
        replace(a, scheme=scheme, secondary=Secondary(host, 2), issued=2) if a.slice == COUNTS else a
        for a in base.assignments
    )
    row = ROWS[scheme]
    secondary = replica(COUNTS, 2, **({"primary": False, "capabilities": row, "asked": row} | changes))
    primaries = [_agreed(view.name, view.replicas, scheme) for view in base.nodes]
    return replace(base, assignments=assignments, nodes=(*primaries, node(host, secondary)))


def _agreed(name: str, replicas: Any, scheme: Scheme) -> Any:
    every = Recovery().interval(scheme)
    told = [r.model_copy(update={"ship_every": every}) if r.slice == COUNTS else r for r in replicas]
    return node(name, *told)


def host(base: Snapshot, slice_id: SliceId) -> str:
    return next(a.node for a in base.assignments if a.slice == slice_id)


def without(base: Snapshot, *names: str) -> Snapshot:
    return replace(base, nodes=tuple(view for view in base.nodes if view.name not in names))


def at_epoch(base: Snapshot, epoch: int) -> Snapshot:
    """The primary of counts[0] has come so far."""
    nodes = [
        replace(view, replicas=tuple(r.model_copy(update={"epoch": epoch}) if r.primary else r for r in view.replicas))
        for view in base.nodes
    ]
    return replace(base, nodes=tuple(nodes))


def current(base: Snapshot) -> Assignment:
    return next(a for a in base.assignments if a.slice == COUNTS)


def protected_by(base: Snapshot) -> Scheme:
    return protection(current(base), {view.name: view for view in base.nodes})


@pytest.mark.parametrize("scheme", [s for s in LADDER if ROWS[s] != OFF])
def test_a_secondary_that_does_what_it_should_is_left_alone(scheme: Scheme) -> None:
    assert decided(guarded(scheme)) == ()
    assert protected_by(guarded(scheme)) is scheme


def test_it_takes_over_as_it_is() -> None:
    base = guarded()
    lost = without(base, host(base, COUNTS))
    taken = assigns(decided(lost))[COUNTS]
    assert (taken.node, taken.generation, taken.secondary) == ("node-3", 2, None)
    assert taken.scheme is HOT
    ((where, deploy),) = deployments(taken, LAYOUT)
    assert (where, deploy.primary, deploy.capabilities) == ("node-3", True, ALL)


def test_then_another_one_is_found() -> None:
    base = guarded()
    dead = host(base, COUNTS)
    taken = tuple(
        replace(a, node="node-3", generation=2, secondary=None) if a.slice == COUNTS else a for a in base.assignments
    )
    views = [*without(base, dead, "node-3").nodes, node("node-3", replica(COUNTS, 2))]
    left = replace(base, assignments=taken, nodes=tuple(views))
    placed = assigns(decided(left))[COUNTS].secondary
    assert placed is not None
    assert placed.node not in (dead, "node-3")
    assert placed.generation > 2


def test_not_before_the_new_primary_is_back() -> None:
    base = guarded()
    dead = host(base, COUNTS)
    taken = tuple(
        replace(a, node="node-3", generation=2, secondary=None) if a.slice == COUNTS else a for a in base.assignments
    )
    fresh = replica(COUNTS, 2, steps=Steps(), up_s=0.3)
    views = [*without(base, dead, "node-3").nodes, node("node-3", fresh)]
    left = replace(base, assignments=taken, nodes=tuple(views))
    assert COUNTS not in assigns(decided(left))
    unheard = fresh.model_copy(update={"primary": False, "up_s": 60.0})
    assert COUNTS not in assigns(decided(replace(left, nodes=(*views[:-1], node("node-3", unheard)))))
    idle = replace(left, nodes=(*views[:-1], node("node-3", fresh.model_copy(update={"up_s": 6.0}))))
    assert assigns(decided(idle))[COUNTS].secondary is not None


def test_one_that_failed_does_not_take_over() -> None:
    base = guarded(state=State.FAILED, failure=failure())
    anew = assigns(decided(without(base, host(base, COUNTS))))[COUNTS]
    assert anew.generation == 3
    assert anew.secondary is None


def test_one_that_was_never_heard_of_does_not_take_over() -> None:
    base = guarded()
    silent = tuple(node("node-3") if view.name == "node-3" else view for view in base.nodes)
    anew = assigns(decided(without(replace(base, nodes=silent), host(base, COUNTS))))[COUNTS]
    assert anew.generation == 3


def test_a_failed_primary_is_taken_over_too_and_counted() -> None:
    base = guarded()
    taken = assigns(decided(failing_primary(base)))[COUNTS]
    assert (taken.node, taken.generation, taken.failures) == ("node-3", 2, 1)


def failing_primary(base: Snapshot, **kind: Any) -> Snapshot:
    broken = failing(base, {COUNTS: failure(**kind)})
    well = tuple(
        view if view.name == "node-3" else broken_view
        for view, broken_view in zip(base.nodes, broken.nodes, strict=True)
    )
    return replace(broken, nodes=well)


def test_a_slice_that_must_make_a_bag_again_does_so_itself() -> None:
    """The state of its secondary may be past that epoch already; so both start anew, in the right order."""
    base = guarded()
    reader = failing(base, {SliceId("out", 0): failure(damaged=((COUNTS, 4),))})
    again = assigns(decided(reader))[COUNTS]
    assert (again.node, again.rewind, again.secondary) == (host(base, COUNTS), 4, None)
    assert again.generation > 2


def test_both_lost_at_once_is_passive_replication() -> None:
    base = guarded()
    left = without(base, host(base, COUNTS), "node-3")
    anew = assigns(decided(left))[COUNTS]
    assert anew.node == left.nodes[0].name
    assert anew.generation == 3


def test_a_lost_secondary_is_replaced_and_the_primary_does_not_notice() -> None:
    base = without(guarded(), "node-3")
    changed = assigns(decided(base))[COUNTS]
    assert (changed.node, changed.generation) == (host(base, COUNTS), 1)
    assert changed.secondary is not None
    assert changed.secondary.node != changed.node
    assert changed.secondary.generation == 3


def test_after_secondaries_that_keep_failing_there_is_none_for_a_while() -> None:
    base = guarded(state=State.FAILED, failure=failure())
    seen = []
    for _ in range(MAX_MISHAPS):
        found = assigns(decided(base))[COUNTS]
        seen.append((found.mishaps, found.secondary is None))
        placed = found.secondary
        assignments = tuple(found if a.slice == COUNTS else a for a in base.assignments)
        broken = replica(
            COUNTS, placed.generation if placed else 0, primary=False, state=State.FAILED, failure=failure()
        )
        nodes = [view for view in base.nodes if view.name != "node-3"]
        base = replace(base, assignments=assignments, nodes=(*nodes, node("node-3", broken)))
    assert seen == [(1, False), (2, False), (3, True)]
    assert COUNTS not in assigns(decided(base))
    rested = current(base).rests_until
    assert rested == replica(COUNTS, 1).epoch + REST_EPOCHS
    assert COUNTS not in assigns(decided(at_epoch(base, rested - 1)))
    tried = assigns(decided(at_epoch(base, rested)))[COUNTS]
    assert (tried.mishaps, tried.secondary is None) == (3, False)


def test_one_that_made_it_forgives_those_before_it() -> None:
    base = guarded()
    assignments = tuple(replace(a, mishaps=4, rests_until=99) if a.slice == COUNTS else a for a in base.assignments)
    forgiven = assigns(decided(replace(base, assignments=assignments)))[COUNTS]
    assert (forgiven.mishaps, forgiven.rests_until) == (0, 0)


def test_it_stands_in_another_domain_if_there_is_one() -> None:
    base = healthy()
    assignments = tuple(replace(a, scheme=HOT) if a.slice == COUNTS else a for a in base.assignments)
    home, other = host(base, COUNTS), next(v.name for v in base.nodes if v.name != host(base, COUNTS))
    domains = {home: "a", other: "a"}
    nodes = [replace(view, domain=domains[view.name]) for view in base.nodes]
    # The idle one in the same domain has the least to do, and would go down with its primary.
    idle, busy = node("node-3", domain="a"), node("node-4", replica(OTHER, 9), domain="b")
    found = assigns(decided(replace(base, assignments=assignments, nodes=(*nodes, idle, busy))))
    placed = found[COUNTS].secondary
    assert placed is not None
    assert placed.node == "node-4"


def test_with_one_node_nobody_can_stand_by() -> None:
    alone = node("node-1", *(replica(s) for s in LAYOUT.slices))
    assignments = tuple(
        Assignment(s, "node-1", 1, scheme=HOT if s == COUNTS else Scheme.PASSIVE_REPLICATION) for s in LAYOUT.slices
    )
    found = decided(snapshot(alone, assignments=assignments))
    assert assigns(found) == {}


def test_another_scheme_is_another_row_for_the_same_secondary() -> None:
    base = guarded()
    switched = tuple(replace(a, scheme=Scheme.ACTIVE_STANDBY) if a.slice == COUNTS else a for a in base.assignments)
    found = [i for i in decided(replace(base, assignments=switched)) if isinstance(i, DeployReplica)]
    rows = {i.node: i.deploy.capabilities for i in found}
    assert rows["node-3"] == ROWS[Scheme.ACTIVE_STANDBY]
    assert {i.deploy.generation for i in found if i.node == "node-3"} == {2}


def test_a_secondary_nobody_wants_any_more_goes() -> None:
    base = guarded()
    switched = tuple(
        replace(a, scheme=Scheme.PASSIVE_REPLICATION) if a.slice == COUNTS else a for a in base.assignments
    )
    dropped = assigns(decided(replace(base, assignments=switched)))[COUNTS]
    assert dropped.secondary is None
    assert dropped.issued == 2
    after = replace(base, assignments=tuple(dropped if a.slice == COUNTS else a for a in base.assignments))
    stops = [i for i in decided(after) if isinstance(i, StopReplica)]
    assert [(i.node, i.slice, i.generation) for i in stops] == [("node-3", COUNTS, 2)]


def test_two_that_disagree_never_work_side_by_side_again() -> None:
    base = guarded(Scheme.ACTIVE_REPLICATION, diverged=4)
    found = assigns(decided(base))[COUNTS]
    assert found.passive
    assert found.scheme is Scheme.PASSIVE_STANDBY_COLD, "its state is not loaded by running a batch again"


def test_protection_is_what_was_reached_not_what_was_asked_for() -> None:
    half = guarded(Scheme.ACTIVE_REPLICATION, capabilities=ROWS[Scheme.PASSIVE_STANDBY_COLD])
    assert protected_by(half) is Scheme.PASSIVE_STANDBY_COLD
    assert protected_by(without(guarded(), "node-3")) is Scheme.PASSIVE_REPLICATION


def test_only_operators_have_secondaries_and_only_deterministic_ones_work_twice() -> None:
    source, shaky = Vertex("s", Kind.SOURCE, 1), Vertex("o", Kind.OPERATOR, 1, deterministic=False)
    assert initial_scheme(source, Scheme.ACTIVE_REPLICATION) is Scheme.PASSIVE_REPLICATION
    assert initial_scheme(shaky, Scheme.ACTIVE_REPLICATION) is HOT
    assert initial_scheme(replace(shaky, stateful=True), HOT) is Scheme.PASSIVE_STANDBY_COLD
    assert initial_scheme(replace(shaky, recovery=Recovery(objective=1)), None) is HOT
    assert allowed(Scheme.NONE, shaky, passive=True) is Scheme.NONE
    assert allowed(Scheme.DEPLOYED, shaky, passive=True) is Scheme.DEPLOYED


@pytest.mark.parametrize(
    ("scheme", "guarantee", "every"),
    [
        (Scheme.NONE, Guarantee.PRECISE, 0),
        (Scheme.DEPLOYED, Guarantee.AMNESIA, 0),
        (Scheme.DEPLOYED, Guarantee.GAP, 2),
        (HOT, Guarantee.PRECISE, 1),
        (Scheme.ACTIVE_STANDBY, Guarantee.PRECISE, 5),
    ],
)
def test_what_is_shipped_follows_the_scheme(scheme: Scheme, guarantee: Guarantee, every: int) -> None:
    layout = replace(
        LAYOUT, vertices=tuple(replace(v, recovery=Recovery(guarantee=guarantee)) for v in LAYOUT.vertices)
    )
    ((_, deploy),) = deployments(Assignment(WORDS, "node-1", 1, scheme=scheme), layout)
    assert deploy.ship_every == every
