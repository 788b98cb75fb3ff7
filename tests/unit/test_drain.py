"""Draining a node: its slices move away, and the run does not notice. With notice, the node leaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.simulated.cluster import Cluster
from tests.unit.test_enactment import die_after, dies

from understudy.control.cluster.drain import leave
from understudy.control.cluster.instructions import Assign
from understudy.control.cluster.placement import candidates
from understudy.control.cluster.suggestions import Origin
from understudy.errors import InvalidInput
from understudy.model.capabilities import LADDER, rank
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
    return node not in cluster.nodes or not cluster.nodes[node].replicas


def protected(cluster: Cluster, scheme: Scheme) -> bool:
    operators = [entry for entry in cluster.manager.state().slices if entry.kind == "operator"]
    return bool(operators) and all(entry.protection == scheme for entry in operators)


def kinds(cluster: Cluster) -> set[str]:
    return {event.kind for event in cluster.store.events()}


def test_a_few_slices_leave_at_once_and_nothing_is_lost(cluster: Cluster) -> None:
    leaving, most = hosted(cluster, "node-2"), cluster.manager.run.config.cluster.moves_at_once
    assert len(leaving) > most
    cluster.manager.drain("node-2")
    while not drained(cluster, "node-2"):
        cluster.step()
        assert sum(a.moving is not None for a in cluster.store.assignments()) <= most
    moved = [e.fields["slice"] for e in cluster.store.events() if e.kind == "moved"]
    assert sorted(moved) == sorted(leaving)
    cluster.steps(0.5)
    said = [event.fields["node"] for event in cluster.store.events() if event.kind == "drained"]
    assert said == ["node-2"], "once"
    assert "node-2" in cluster.nodes, "it was not told to leave"
    before = cluster.delivered
    cluster.until(lambda: cluster.delivered > before + 3)
    report = cluster.manager.report()
    assert (report.sinks["out"].lost_epochs, report.sinks["out"].duplicate_epochs) == (0, 0)


@pytest.mark.parametrize("scheme", LADDER)
def test_under_every_scheme_primaries_and_secondaries_leave(tmp_path: Path, scheme: Scheme) -> None:
    """Nothing is less protected meanwhile, while there are nodes enough."""
    cluster = Cluster(tmp_path, nodes=4, scheme=scheme)
    cluster.until(lambda: cluster.delivered > 2 and protected(cluster, scheme))
    leaving = hosted(cluster, "node-2")
    cluster.manager.drain("node-2")
    while not drained(cluster, "node-2"):
        cluster.step()
        for entry in cluster.manager.state().slices:
            assert entry.kind != "operator" or rank(Scheme(entry.protection)) >= rank(scheme), cluster.story()
    assert not any(a.secondary and a.secondary.node == "node-2" for a in cluster.store.assignments())
    followed = [e for e in cluster.manager.events() if e.kind == "moved"]
    assert sorted(e.fields["slice"] for e in followed) == leaving
    report = cluster.manager.report()
    assert all(one.away_s == 0.0 for one in report.moves if one.slice.startswith(("words", "counts")))
    assert (report.sinks["out"].lost_epochs, report.sinks["out"].duplicate_epochs) == (0, 0)


def test_the_most_important_slices_leave_first(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, nodes=1)
    cluster.until(lambda: cluster.delivered > 2)
    cluster.switch(cluster.layout.slices[-2], Scheme.ACTIVE_REPLICATION)
    cluster.start_node()
    cluster.steps(1.0)
    cluster.manager.drain("node-1")
    cluster.until(lambda: "move_began" in kinds(cluster))
    began = [e.fields["slice"] for e in cluster.store.events() if e.kind == "move_began"]
    assert began[0] == str(cluster.layout.slices[-2])


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


def test_nothing_leaves_while_a_slice_is_on_its_way_back(cluster: Cluster) -> None:
    cluster.kill("node-1")
    cluster.until(cluster.settled)
    cluster.step()
    cluster.manager.drain("node-2")
    well = cluster.manager._observe()
    assert len(list(leave(well, cluster.layout))) == well.config.cluster.moves_at_once
    for change in ({"steps": Steps()}, {"state": State.STARTING}, {"state": State.FAILED}):
        back = replace(well, nodes=tuple(_changed(node, change) for node in well.nodes))
        assert list(leave(back, cluster.layout)) == []


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


# -- with notice


@pytest.mark.parametrize("how", ["drain", "signal"])
@pytest.mark.parametrize("scheme", [Scheme.PASSIVE_REPLICATION, Scheme.PASSIVE_STANDBY_HOT])
def test_a_node_that_is_given_notice_leaves_when_it_is_empty(tmp_path: Path, how: str, scheme: Scheme) -> None:
    cluster = Cluster(tmp_path, scheme=scheme, epochs=200)
    cluster.until(lambda: cluster.delivered > 2 and protected(cluster, scheme))
    cluster.drain("node-2", within_s=30.0) if how == "drain" else cluster.give_notice("node-2")
    began = cluster.now
    cluster.until(lambda: "node-2" not in cluster.nodes)
    assert cluster.now - began < 30.0
    cluster.steps(2.0)
    assert "node_left" in kinds(cluster)
    assert "node_lost" not in kinds(cluster)
    assert [node.name for node in cluster.manager.state().nodes] == ["node-1", "node-3"]
    cluster.until(lambda: cluster.over)
    cluster.check_output()
    report = cluster.manager.report()
    assert report.verdict == "exact"
    assert all(one.away_s == 0.0 for one in report.moves if one.slice.startswith(("words", "counts")))


def test_what_does_not_fit_in_the_time_is_handed_over(tmp_path: Path) -> None:
    """The other nodes are too slow for a move, but the secondaries there stand by."""
    cluster = Cluster(tmp_path, scheme=Scheme.PASSIVE_STANDBY_COLD, epochs=120)
    cluster.until(lambda: cluster.delivered > 2 and protected(cluster, Scheme.PASSIVE_STANDBY_COLD))
    for name in ("node-1", "node-3"):
        cluster.nodes[name].slow_down(3.0)
    cluster.drain("node-2", within_s=1.1)
    decided = []
    while "node-2" in cluster.nodes and not cluster.over:
        decided += [i for i in cluster.step() if isinstance(i, Assign) and i.origin is Origin.DRAIN]
    assert any("node-2 leaves" in i.reason for i in decided)
    cluster.until(lambda: cluster.over)
    cluster.check_output()
    assert cluster.manager.report().verdict == "exact"


def test_a_node_that_nobody_can_replace_stays_until_its_time_is_up(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, nodes=1, epochs=60)
    cluster.until(lambda: cluster.delivered > 2)
    cluster.give_notice("node-1")
    cluster.until(lambda: "node-1" not in cluster.nodes)
    cluster.start_node()
    cluster.until(lambda: cluster.over)
    cluster.check_output()


def test_a_notice_that_is_interrupted_anywhere_is_obeyed(tmp_path: Path) -> None:
    for instructions in range(0, 60, 3):
        home = tmp_path / str(instructions)
        home.mkdir()
        cluster = Cluster(home, scheme=Scheme.PASSIVE_STANDBY_HOT)
        cluster.until(lambda c=cluster: c.delivered > 2 and c.settled())  # type: ignore[misc]
        die_after(cluster, instructions)
        cluster.give_notice("node-2")
        died = dies(cluster, 25.0)
        cluster.until(lambda c=cluster: "node-2" not in c.nodes)  # type: ignore[misc]
        cluster.until(cluster.settled)
        if not died:
            assert instructions > 10, "more was to do than that"
            return
    raise AssertionError("there was no end of instructions")


def test_a_notice_is_kept_by_the_next_manager(cluster: Cluster) -> None:
    cluster.drain("node-2", within_s=40.0)
    cluster.restart_manager()
    cluster.steps(0.5)
    left_s = cluster.manager.observer.views()["node-2"].leaves_s
    assert left_s is not None
    assert 38.0 < left_s < 40.0
    cluster.manager.drain("node-2", undo=True)
    assert cluster.manager.observer.views()["node-2"].leaves_s is None
