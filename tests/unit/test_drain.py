"""Draining a node: its slices leave one at a time, and the run does not notice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.simulated.cluster import Cluster

from understudy.control.cluster.drain import moves
from understudy.control.cluster.instructions import Assign
from understudy.control.cluster.placement import candidates
from understudy.errors import InvalidInput
from understudy.model.capabilities import LADDER, OFF, ROWS
from understudy.model.messages import Hello, State, Steps
from understudy.model.recovery import Scheme
from understudy.model.snapshot import NodeView


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    made = Cluster(tmp_path)
    made.until(lambda: made.delivered > 2)
    return made


def hosted(cluster: Cluster, node: str) -> list[str]:
    return [str(a.slice) for a in cluster.store.assignments() if a.node == node]


def drained(cluster: Cluster, node: str) -> bool:
    return not cluster.nodes[node].replicas


def protected(cluster: Cluster, scheme: Scheme) -> bool:
    operators = [entry for entry in cluster.manager.state().slices if entry.kind == "operator"]
    return bool(operators) and all(entry.protection == scheme for entry in operators)


def test_slices_leave_one_at_a_time_and_nothing_is_lost(cluster: Cluster) -> None:
    leaving = hosted(cluster, "node-2")
    assert leaving
    cluster.manager.drain("node-2")
    moved: list[str] = []
    while not drained(cluster, "node-2"):
        assigned = [i.assignment for i in cluster.step() if isinstance(i, Assign)]
        assert len(assigned) <= 1
        moved += [str(a.slice) for a in assigned if a.node != "node-2" and str(a.slice) in leaving]
        assert len(moved) <= len(leaving)
    assert sorted(moved) == sorted(leaving)
    cluster.steps(0.5)
    said = [event.fields["node"] for event in cluster.store.events() if event.kind == "drained"]
    assert said == ["node-2"], "once"
    before = cluster.delivered
    cluster.until(lambda: cluster.delivered > before + 3)
    report = cluster.manager.report()
    assert (report.sinks["out"].lost_epochs, report.sinks["out"].duplicate_epochs) == (0, 0)


@pytest.mark.parametrize("scheme", LADDER)
def test_under_every_scheme_primaries_and_secondaries_leave(tmp_path: Path, scheme: Scheme) -> None:
    cluster = Cluster(tmp_path, scheme=scheme)
    cluster.until(lambda: cluster.delivered > 2 and protected(cluster, scheme))
    leaving = hosted(cluster, "node-2")
    cluster.manager.drain("node-2")
    cluster.until(lambda: drained(cluster, "node-2"))
    cluster.until(lambda: protected(cluster, scheme))
    assert not any(a.secondary and a.secondary.node == "node-2" for a in cluster.store.assignments())
    followed = [e for e in cluster.manager.events() if e.kind in ("assigned", "promoted") and "drained" in e.text]
    assert sorted(e.fields["slice"] for e in followed) == leaving
    # Where a secondary stood by, it took over instead of a recovery.
    moved = {e.kind for e in followed if e.fields["slice"].startswith(("words", "counts"))}
    assert moved == {"assigned" if ROWS[scheme] == OFF else "promoted"}
    report = cluster.manager.report()
    assert (report.sinks["out"].lost_epochs, report.sinks["out"].duplicate_epochs) == (0, 0)


def test_a_drained_node_gets_nothing_until_it_is_let_in_again(cluster: Cluster) -> None:
    cluster.manager.drain("node-3")
    cluster.until(lambda: drained(cluster, "node-3"))
    cluster.kill("node-2")
    cluster.until(cluster.settled)
    assert hosted(cluster, "node-3") == []
    cluster.manager.drain("node-3", undo=True)
    cluster.until(lambda: drained(cluster, "node-1") or cluster.settled())
    cluster.kill("node-1")
    cluster.until(cluster.settled)
    assert len(hosted(cluster, "node-3")) == len(cluster.layout.slices)


def test_the_last_node_keeps_its_slices(cluster: Cluster) -> None:
    for name in ("node-1", "node-2", "node-3"):
        cluster.manager.drain(name)
    before = cluster.store.assignments()
    cluster.steps(2.0)
    assert [a.node for a in cluster.store.assignments()] == [a.node for a in before]


def test_nothing_moves_while_a_slice_is_on_its_way_back(cluster: Cluster) -> None:
    cluster.kill("node-1")
    cluster.until(cluster.settled)
    cluster.step()
    cluster.manager.drain("node-2")
    well = cluster.manager._observe()
    assert len(list(moves(well, cluster.layout))) == 1
    for change in ({"steps": Steps()}, {"state": State.STARTING}, {"state": State.FAILED}):
        back = replace(well, nodes=tuple(_changed(node, change) for node in well.nodes))
        assert list(moves(back, cluster.layout)) == []


def _changed(node: NodeView, change: dict[str, Any]) -> NodeView:
    """With every replica that was brought back in another state."""
    replicas = tuple(r.model_copy(update=change) if r.generation > 1 else r for r in node.replicas)
    return replace(node, replicas=replicas)


def test_draining_survives_the_manager_but_not_a_new_process(cluster: Cluster) -> None:
    cluster.manager.drain("node-2")
    cluster.restart_manager()
    cluster.steps(0.5)
    assert {node.name: node.draining for node in cluster.manager.state().nodes}["node-2"]
    cluster.manager.connect(Hello(node="node-2", token="", pid=99), lambda _: None)
    assert not {node.name: node.draining for node in cluster.manager.state().nodes}["node-2"]


def test_a_node_that_is_not_there_cannot_be_drained(cluster: Cluster) -> None:
    with pytest.raises(InvalidInput, match="node-9"):
        cluster.manager.drain("node-9")


def test_candidates() -> None:
    one = NodeView("one", connected=True, ready=True, silent_s=0.0)
    two = NodeView("two", connected=True, ready=True, silent_s=0.0, draining=True)
    gone = NodeView("gone", connected=False, ready=True, silent_s=0.0)
    assert candidates([one, two, gone]) == [one]
    assert candidates([two, gone]) == [two]
    assert candidates([gone]) == []
