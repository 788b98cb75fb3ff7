"""Steps towards an even load: each is worthwhile, there is an end of them, and they never go to and fro."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import word_count_layout
from understudy.control.cluster.balance import Balance, Step
from understudy.control.cluster.sites import Placing
from understudy.control.cluster.weights import Weights
from understudy.control.placement import RULES, named
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.snapshot import Assignment, NodeView, Secondary

LAYOUT = word_count_layout(counts=24)
GAIN = 0.2
SCHEMES = (Scheme.PASSIVE_REPLICATION, Scheme.PASSIVE_STANDBY_HOT, Scheme.ACTIVE_REPLICATION)
Loads = dict[SliceId, float]


def nodes_of(count: int, domains: int) -> dict[str, NodeView]:
    def view(number: int) -> NodeView:
        domain = f"rack-{number % domains}" if domains else ""
        return NodeView(f"node-{number}", connected=True, ready=True, silent_s=0.0, domain=domain)

    return {node.name: node for node in map(view, range(count))}


def balance(
    assignments: Mapping[SliceId, Assignment], nodes: Mapping[str, NodeView], rule: str, loads: Loads
) -> Balance:
    return Balance(assignments.values(), nodes, LAYOUT, Placing(named(rule), Weights(LAYOUT, loads)), GAIN)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[dict[SliceId, Assignment], dict[str, NodeView], Loads]:
    """Any placement, in which two replicas of a slice are on two nodes, and loads that differ up to tenfold."""
    nodes = nodes_of(draw(st.integers(2, 5)), draw(st.sampled_from((0, 0, 2))))
    names, scheme = sorted(nodes), draw(st.sampled_from(SCHEMES))
    found, loads = {}, {}
    for number in range(draw(st.integers(1, 16))):
        slice_id = SliceId("counts", number)
        here, there = draw(st.permutations(names))[:2]
        placed = Secondary(there, 2) if scheme is not Scheme.PASSIVE_REPLICATION else None
        found[slice_id] = Assignment(slice_id, here, 1, scheme=scheme, secondary=placed)
        loads[slice_id] = draw(st.floats(0.1, 1.0))
    return found, nodes, loads


def played(now: Balance, most: int = 200) -> list[Step]:
    """All steps until none is worthwhile; each must lessen the unevenness by what it says, and by enough."""
    taken: list[Step] = []
    while (step := now.best()) is not None:
        assert len(taken) < most, "there is no end of them"
        before = now.unevenness
        now.take(step)
        assert abs(before - now.unevenness - step.gain) < 1e-5
        assert step.gain > 0
        taken.append(step)
    return taken


@given(given=clusters(), rule=st.sampled_from(sorted(RULES)))
def test_steps_come_to_an_end_and_no_replica_returns(
    given: tuple[dict[SliceId, Assignment], dict[str, NodeView], Loads], rule: str
) -> None:
    assigned, nodes, loads = given
    now = balance(assigned, nodes, rule, loads)
    taken = played(now)
    for one in now.placement().values():
        assert one.secondary is None or one.secondary.node != one.node
    seen = {(one.slice, one.node) for one in assigned.values()}
    for step in taken:
        if step.primary:
            assert (step.slice, step.source) in seen
            seen.add((step.slice, step.target))
    assert balance(now.placement(), nodes, rule, loads).best() is None, "looked at afresh, it is even as well"


@given(counts=st.lists(st.integers(0, 4), min_size=1, max_size=24), joins=st.integers(1, 2))
def test_equal_slices_are_spread_to_within_one_and_a_margin(counts: list[int], joins: int) -> None:
    """A join: the others give away what is above the average, and nothing moves among them."""
    nodes = nodes_of(5 + joins, 0)
    assigned = {
        SliceId("counts", n): Assignment(SliceId("counts", n), f"node-{home}", 1) for n, home in enumerate(counts)
    }
    now = balance(assigned, nodes, "least_loaded", {})
    margin = now.margin
    taken = played(now)
    loads = [now.carries(name) for name in nodes]
    assert max(loads) - min(loads) < 1 + margin + 1e-6
    assert len({step.slice for step in taken}) == len(taken), "no slice moves twice"
    average = len(assigned) / len(nodes)
    assert all(before > average for before in (counts.count(int(s.source[5:])) for s in taken))


@given(given=clusters(), seed=st.integers(0, 10**6), rule=st.sampled_from(("least_loaded", "chained")))
def test_loads_that_are_measured_a_little_wrong_never_lead_to_and_fro(
    given: tuple[dict[SliceId, Assignment], dict[str, NodeView], Loads], seed: int, rule: str
) -> None:
    """Every look sees other loads. As long as no node's load is wrong by half the margin, no placement comes twice."""
    assigned, nodes, loads = given
    chance = random.Random(seed)
    now, placements = dict(assigned), [_places(assigned)]
    for _ in range(80):
        true = balance(now, nodes, rule, loads)
        heaviest = max(true.carries(name) for name in nodes)
        # Weights are relative to an average that is wrong as well, which counts twice.
        wrong = 0.2 * true.margin / heaviest
        seen = {s: load * (1 + wrong * chance.uniform(-1, 1)) for s, load in loads.items()}
        look = balance(now, nodes, rule, seen)
        step = look.best()
        if step is None:
            continue
        look.take(step)
        now = {s: replace(one) for s, one in look.placement().items()}
        assert _places(now) not in placements, f"{step.reason}: it was like this before"
        placements.append(_places(now))
    assert len(placements) < 80


def _places(assigned: Mapping[SliceId, Assignment]) -> list[tuple[str, str]]:
    return [(one.node, one.secondary.node if one.secondary else "") for _, one in sorted(assigned.items())]
