"""Full nodes: who does without protection, in which order, and when it comes back."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from tests.snapshots import LAYOUT, node, replica

from understudy.control.cluster.deploying import deployments
from understudy.control.cluster.secondaries import effective
from understudy.control.cluster.throttling import throttle
from understudy.model.capabilities import ROWS
from understudy.model.config import DEFAULTS
from understudy.model.layout import Layout
from understudy.model.names import SliceId
from understudy.model.recovery import Recovery, Scheme
from understudy.model.snapshot import Assignment, NodeView, Secondary, Throttle

CALM_S = DEFAULTS.overload.calm_s
FULL_S = DEFAULTS.overload.full_s
NEXT_S = DEFAULTS.overload.next_s

HOT = Scheme.PASSIVE_STANDBY_HOT
NAMES = ("words[0]", "words[1]", "counts[0]", "counts[1]")


def laid_out() -> Layout:
    """Of the two operators one has an objective, so it is more important."""
    return Layout(
        tuple(replace(v, recovery=Recovery(objective="2 s")) if v.name == "counts" else v for v in LAYOUT.vertices)
    )


def known(**throttles: Throttle) -> list[Assignment]:
    """All with a hot standby on the second node."""
    usual: dict[str, Any] = {"scheme": HOT, "secondary": Secondary("node-2", 2)}
    names = {name: name.replace("[", "").replace("]", "") for name in NAMES}
    return [
        Assignment(SliceId.parse(name), "node-1", 1, throttle=throttles.get(short, Throttle()), **usual)
        for name, short in names.items()
    ]


def nodes(full_s: float = 0.0, **changes: Any) -> dict[str, NodeView]:
    slices = [SliceId.parse(name) for name in NAMES]
    first = node("node-1", *(replica(s) for s in slices))
    second = node("node-2", *(replica(s, 2, primary=False, capabilities=ROWS[HOT]) for s in slices), full_s=full_s)
    return {"node-1": replace(first, **changes), "node-2": second}


def changed(assignments: list[Assignment], views: dict[str, NodeView], age_s: float) -> list[tuple[str, bool]]:
    found = throttle(assignments, views, laid_out(), age_s)
    return [(str(one.assignment.slice), one.assignment.throttle.on) for one in found]


def test_a_node_that_is_behind_for_a_moment_is_not_full() -> None:
    assert changed(known(), nodes(FULL_S - 0.1), 50.0) == []
    assert changed(known(), nodes(FULL_S), 50.0) == [("words[1]", True)], "one without an objective"


def test_only_secondaries_on_the_full_node_give_way() -> None:
    assert changed(known(), nodes(full_s=0.0) | {"node-1": replace(nodes()["node-1"], full_s=99.0)}, 50.0) == []


def test_one_after_the_other_the_least_important_first() -> None:
    assignments, views, order = known(), nodes(99.0), []
    for tick in range(60):
        for one in throttle(assignments, views, laid_out(), 50.0 + 0.1 * tick):
            order.append((str(one.assignment.slice), tick))
            assignments = [one.assignment if a.slice == one.assignment.slice else a for a in assignments]
    assert [name for name, _ in order] == ["words[1]", "words[0]", "counts[1]", "counts[0]"]
    assert all(later - earlier >= round(NEXT_S / 0.1) for (_, earlier), (_, later) in pairwise(order))


def test_who_stands_in_or_costs_nothing_is_left_alone() -> None:
    for change in ({"standing_in": True}, {"scheme": Scheme.DEPLOYED}, {"secondary": None}):
        assert changed([replace(one, **change) for one in known()], nodes(99.0), 50.0) == []


def test_they_go_on_one_by_one_the_most_important_first() -> None:
    on = Throttle(on=True, at=50.0, times=1)
    assignments = known(words0=on, counts0=on, counts1=on)
    assert changed(assignments, nodes(), 50.0 + CALM_S - 0.1) == []
    assert changed(assignments, nodes(0.1), 50.0 + CALM_S) == [], "somebody is behind"
    assert changed(assignments, nodes(), 50.0 + CALM_S) == [("counts[0]", False)]
    going = known(words0=on, counts0=Throttle(on=False, at=60.0, times=1), counts1=on)
    assert changed(going, nodes(), 69.0) == []
    assert changed(going, nodes(), 70.0) == [("counts[1]", False)]


def test_who_is_throttled_again_soon_has_to_wait_longer() -> None:
    (again,) = throttle([known(words0=Throttle(at=60.0, times=1))[0]], nodes(99.0), laid_out(), 70.0)
    assert again.assignment.throttle == Throttle(on=True, at=70.0, times=2)
    assert changed([again.assignment], nodes(), 70.0 + CALM_S) == []
    assert changed([again.assignment], nodes(), 70.0 + 2 * CALM_S) == [("words[0]", False)]
    (later,) = throttle([known(words0=Throttle(at=60.0, times=3))[0]], nodes(99.0), laid_out(), 130.0)
    assert later.assignment.throttle.times == 1


def test_a_throttled_secondary_is_deployed_and_its_primary_ships_less() -> None:
    hot, throttled = known()[0], replace(known()[0], throttle=Throttle(on=True))
    assert effective(throttled) is Scheme.DEPLOYED
    (_, primary), (_, secondary) = deployments(throttled, LAYOUT)
    assert secondary.capabilities == ROWS[Scheme.DEPLOYED]
    assert primary.ship_every > dict(deployments(hot, LAYOUT))["node-1"].ship_every
    woken = dict(deployments(replace(throttled, standing_in=True), LAYOUT))["node-2"]
    assert woken.capabilities.sends, "who stands in does everything"
