"""Which nodes are given up together: a domain that falls silent at once is one failure, and nothing else is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.snapshots import decided, healthy, node, snapshot

from understudy.control.cluster.instructions import Assign, LoseDomain, LoseNode
from understudy.control.cluster.losing import lose_nodes
from understudy.model.snapshot import NodeView

SILENT = {"silent_s": 3.05}
BROKEN = {"connected": False, "silent_s": 0.35}


def cluster(*of_domain: dict[str, Any], others: int = 2) -> tuple[NodeView, ...]:
    """A domain whose nodes are like this, and another one that is well."""
    mine = [node(f"node-{n}", domain="rack-1", **changes) for n, changes in enumerate(of_domain, start=1)]
    return (*mine, *(node(f"well-{n}", domain="rack-2") for n in range(others)))


def lost(*nodes: NodeView) -> list[tuple[str, ...]]:
    """The names of what is given up: a tuple for every failure."""
    return [one.nodes for one in lose_nodes(snapshot(*nodes))]


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (SILENT, SILENT, True),
        (BROKEN, BROKEN, True),
        # Its last heartbeat came a little later than that of the other: it would be dead at the next tick.
        (SILENT, {"silent_s": 2.95}, True),
        (BROKEN, {"connected": False, "silent_s": 0.25}, True),
        # On a busy machine heartbeats are late; that both connections broke is sign enough.
        (BROKEN, {"connected": False, "silent_s": 0.05}, True),
        ({"gone": "its JVM ended"}, {"gone": "its JVM ended"}, True),
        # Late, but it was heard long after the other fell silent.
        (SILENT, {"silent_s": 2.0}, False),
        (SILENT, {}, False),
        # A process that died beside one that is late: no sign that they have the same cause.
        (BROKEN, {"silent_s": 0.3}, False),
        ({"gone": "its JVM ended"}, {"silent_s": 0.3}, False),
    ],
)
def test_a_domain_of_two(first: dict[str, Any], second: dict[str, Any], together: bool) -> None:
    assert lost(*cluster(first, second)) == ([("node-1", "node-2")] if together else [("node-1",)])


def test_where_most_are_dead_the_others_may_show_another_sign() -> None:
    frozen = {"silent_s": 0.3}
    assert lost(*cluster(BROKEN, BROKEN, frozen)) == [("node-1", "node-2", "node-3")]
    assert lost(*cluster(BROKEN, frozen, frozen)) == [("node-1",)]
    assert lost(*cluster(BROKEN, BROKEN, {"silent_s": 0.1})) == [("node-1",), ("node-2",)], "heard a moment ago"


def test_a_domain_with_one_node_that_is_well_is_not_lost() -> None:
    assert lost(*cluster(SILENT, SILENT, SILENT, {})) == [("node-1",), ("node-2",), ("node-3",)]


def test_one_node_is_no_domain_and_nodes_without_one_fail_alone() -> None:
    assert lost(*cluster(SILENT)) == [("node-1",)]
    alone = (node("a", silent_s=3.05), node("b", silent_s=3.05), node("c"), node("d"), node("e"))
    assert lost(*alone) == [("a",), ("b",)]


def test_when_everybody_is_late_no_domain_is_lost() -> None:
    late = {"silent_s": 2.0, "late_s": 2.0}
    nodes = [node(f"node-{n}", domain=f"rack-{n % 2}", **late) for n in range(4)]
    assert lost(*nodes) == []


def test_the_loss_of_a_domain_says_who_and_why() -> None:
    (found,) = lose_nodes(snapshot(*cluster(BROKEN, BROKEN), replace=True))
    assert isinstance(found, LoseDomain)
    assert (found.domain, found.replace) == ("rack-1", True)
    assert found.reason == "rack-1 is lost, all 2 nodes of it: node-1, node-2; node-1 has been disconnected for 0.35 s"


def test_a_lost_domain_and_what_follows_from_it_are_one_decision() -> None:
    base = healthy()
    dead = tuple(replace(view, domain="rack-1", silent_s=99.0) for view in base.nodes)
    found = decided(replace(base, nodes=(*dead, node("node-3", domain="rack-2"), node("node-4", domain="rack-2"))))
    assert isinstance(found[0], LoseDomain)
    assert not [one for one in found if isinstance(one, LoseNode)]
    moved = [one.assignment.node for one in found if isinstance(one, Assign)]
    assert moved
    assert set(moved) <= {"node-3", "node-4"}
