"""An even load on the simulated cluster: a node joins, loads change, and little moves."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.simulated import topologies
from tests.simulated.cluster import Cluster
from tests.simulated.deaths import settled
from tests.snapshots import healthy
from tests.theatre import TOKEN, StageHands
from tests.unit.test_enactment import die_after, dies
from typer.testing import CliRunner

from understudy.cli.main import app
from understudy.control.cluster.decide import decide
from understudy.errors import InvalidInput
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.run import RunSpec
from understudy.runtime.serve import compose

STANDBY = Scheme.ACTIVE_STANDBY
EAGER = {"rebalance": True, "rebalance_after_s": 1.0}


def joined(cluster: dict[str, Any] | None = None, scheme: Scheme = STANDBY, **options: Any) -> Cluster:
    """A word count on three nodes, and a fourth that has just come."""
    topology = topologies.word_count(counts=7)
    config = {"cluster": cluster or {}}
    made = Cluster(nodes=3, topology=topology, scheme=scheme, config=config, **options)
    made.until(lambda: settled(made))
    join(made)
    return made


def join(cluster: Cluster) -> None:
    name = cluster.start_node().name
    cluster.until(lambda: any(node.name == name and node.ready for node in cluster.manager.state().nodes))


def carried(cluster: Cluster) -> Counter[str]:
    """Operator slices of every node, primaries and working secondaries alike."""
    found: Counter[str] = Counter(dict.fromkeys(cluster.nodes, 0))
    for one in cluster.store.assignments():
        if one.slice.operator not in ("lines", "out"):
            found[one.node] += 1
            found.update([one.secondary.node] if one.secondary else [])
    return found


def begun(cluster: Cluster) -> list[str]:
    kinds = ("move_began", "secondary_moves")
    return [event.text for event in cluster.store.events() if event.kind in kinds]


def kinds(cluster: Cluster) -> list[str]:
    return [event.kind for event in cluster.store.events()]


def done(cluster: Cluster) -> bool:
    """The request is over, and what it began has ended."""
    return not cluster.manager.memory.decisions.rebalance.left and cluster.settled()


def finish(cluster: Cluster) -> None:
    cluster.store.keep({"goal": cluster.delivered + 10})
    cluster.restart_manager()
    cluster.until(lambda: cluster.over)
    cluster.check_output()
    assert cluster.manager.report().verdict == "exact"


@pytest.mark.parametrize("rule", ["least_loaded", "interleaved", "chained"])
def test_a_node_that_joins_gets_its_part_by_a_few_moves_one_at_a_time(rule: str) -> None:
    cluster = joined({"placement": rule})
    assert carried(cluster)["node-4"] == 0
    planned = cluster.manager.rebalance()
    assert planned
    while not done(cluster):
        cluster.step()
        assert sum(one.moving is not None for one in cluster.store.assignments()) <= 1
    after = carried(cluster)
    assert max(after.values()) - min(after.values()) <= 2, after
    assert 0 < len(begun(cluster)) <= len(planned) <= 2 * after["node-4"]
    assert all("slices' worth" in text for text in begun(cluster))
    assert kinds(cluster).count("rebalanced") == 1
    assert cluster.manager.rebalance(dry_run=True) == []
    assert not {"assigned", "promoted"} & set(kinds(cluster)[kinds(cluster).index("move_began") :])
    finish(cluster)


def test_a_dry_run_moves_nothing() -> None:
    cluster = joined()
    assert cluster.manager.rebalance(dry_run=True) == cluster.manager.rebalance(dry_run=True) != []
    cluster.steps(3.0)
    assert begun(cluster) == []


def test_nothing_moves_by_itself_unless_it_was_asked_for() -> None:
    cluster = joined()
    cluster.steps(20.0)
    assert begun(cluster) == []


def test_by_itself_it_waits_moves_and_comes_to_rest() -> None:
    cluster = joined(EAGER)
    cluster.until(lambda: bool(begun(cluster)))
    cluster.steps(60.0)
    after, moved = carried(cluster), len(begun(cluster))
    assert max(after.values()) - min(after.values()) <= 2, after
    assert len({text.split()[0] for text in begun(cluster)}) == moved, "no slice moved twice"
    cluster.steps(30.0)
    assert len(begun(cluster)) == moved
    finish(cluster)


def test_a_load_that_changes_leads_to_a_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are even. Then two slices of one node turn out to do most of the work."""
    topology = topologies.word_count(counts=6)
    cluster = Cluster(nodes=3, topology=topology, config={"cluster": EAGER})
    cluster.until(lambda: settled(cluster))
    cluster.steps(5.0)
    assert begun(cluster) == []
    assigned = {a.slice: a.node for a in cluster.store.assignments() if a.slice.operator == "counts"}
    first = next(iter(assigned.values()))
    loads = {s: 0.9 if node == first else 0.1 for s, node in assigned.items()}
    monkeypatch.setattr(type(cluster.manager.observer.predictions), "loads", lambda _: loads)
    cluster.until(lambda: bool(begun(cluster)))
    cluster.steps(40.0)
    hosts = {a.slice: a.node for a in cluster.store.assignments()}
    heavy = Counter(hosts[s] for s, load in loads.items() if load > 0.5)
    assert max(heavy.values()) == 1, heavy
    finish(cluster)


def test_slices_that_would_pause_stay_where_they_are() -> None:
    cluster = Cluster(nodes=2, topology=topologies.chance())
    cluster.until(lambda: settled(cluster))
    join(cluster)
    assert {step.slice.operator for step in cluster.manager.rebalance(dry_run=True)} <= {"words", "lines", "out"}


def test_a_draining_node_and_a_recovery_come_first() -> None:
    cluster = joined()
    cluster.manager.rebalance()
    cluster.kill("node-2")
    cluster.step()
    cluster.drain("node-3")
    while not cluster.settled() or any(a.node in ("node-2", "node-3") for a in cluster.store.assignments()):
        cluster.step()
        reasons = [text for text in begun(cluster) if "drained" not in text]
        assert len(reasons) <= 1, "one may have begun before"
    cluster.check_output()


@pytest.mark.parametrize("rule", ["least_loaded", "interleaved"])
def test_what_is_interrupted_anywhere_is_carried_out(rule: str) -> None:
    for instructions in range(60):
        cluster = joined({"placement": rule, "rebalance_gain": 0.6})
        die_after(cluster, instructions)
        cluster.manager.rebalance()
        died = dies(cluster, 12.0)
        cluster.until(lambda c=cluster: done(c))  # type: ignore[misc]
        assert cluster.manager.rebalance(dry_run=True) == []
        assert "rebalanced" in kinds(cluster)
        if not died:
            assert instructions > 2
            finish(cluster)
            return
    raise AssertionError("there was no end of instructions")


@pytest.mark.parametrize("victim", ["node-1", "node-4"])
def test_a_node_that_dies_meanwhile_spoils_nothing(victim: str) -> None:
    for moment in (0.1, 0.4, 0.8, 1.5):
        cluster = joined({"placement": "interleaved"})
        cluster.manager.rebalance()
        cluster.steps(moment)
        cluster.kill(victim)
        cluster.until(lambda c=cluster: done(c))  # type: ignore[misc]
        finish(cluster)


# -- who asks for it


def test_the_api_says_what_moves() -> None:
    cluster = joined()
    client = TestClient(compose(cluster.manager, TOKEN, StageHands(cluster)))
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    answer = client.post("/api/v1/rebalance", json={"dry_run": True}, headers=bearer).json()
    assert answer["dry_run"]
    assert answer["steps"][0].keys() == {"slice", "source", "target", "primary", "reason"}
    assert client.post("/api/v1/rebalance", json={}).status_code == 401
    assert not cluster.manager.memory.decisions.rebalance.left
    client.post("/api/v1/rebalance", json={}, headers=bearer)
    assert cluster.manager.memory.decisions.rebalance.left == len(answer["steps"])


def test_before_data_flows_it_is_refused() -> None:
    with pytest.raises(InvalidInput, match="does not flow yet"):
        Cluster(nodes=1).manager.rebalance()


def test_the_command_without_a_manager_says_so() -> None:
    result = CliRunner().invoke(app, ["rebalance", "--dry-run", "--url", "http://127.0.0.1:9"])
    assert result.exit_code != 0


def test_nothing_is_decided_where_it_is_off() -> None:
    config = RunSpec.of("r", "a", config={"cluster": {"rebalance": False}}).config
    given = replace(healthy(), config=config, loads={SliceId("counts", 0): 9.0, SliceId("counts", 1): 0.1})
    assert decide(given).memory.rebalance == given.memory.rebalance
