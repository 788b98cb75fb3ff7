"""The manager without processes: nodes are objects, time is a number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.builders import one
from tests.simulated.cluster import BEAT_S, OPERATORS, Cluster, failure
from tests.simulated.topologies import word_count

from understudy.control.cluster.instructions import LoseNode
from understudy.errors import InvalidInput
from understudy.model.config import DEFAULTS
from understudy.model.messages import Analysis, Check, Checked, Heartbeat, Hello, Receipt, ReplicaStatus, Steps
from understudy.model.names import SliceId
from understudy.model.recovery import Recovery, Scheme
from understudy.model.snapshot import Phase

GRACE_S = DEFAULTS.manager.grace_s
COUNTS = SliceId("counts", 0)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    made = Cluster(tmp_path)
    made.until(lambda: made.delivered > 2)
    return made


def phase(cluster: Cluster) -> Phase:
    return cluster.manager.state().phase


def kinds(cluster: Cluster) -> list[str]:
    return [event.kind for event in cluster.manager.events()]


# -- the life of a run


def test_a_run_goes_from_gathering_to_its_goal(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, epochs=12)
    assert phase(cluster) is Phase.GATHERING
    cluster.until(lambda: phase(cluster).over)
    report = cluster.manager.report()
    assert (phase(cluster), report.verdict, report.epochs) == (Phase.FINISHED, "exact", 12)
    assert set(report.slices) == {str(slice_id) for slice_id in cluster.layout.slices}
    assert kinds(cluster)[0] == "manager"
    assert "running" in kinds(cluster)
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == kinds(cluster)


def test_a_finished_run_stays_finished_after_a_restart(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, epochs=5)
    cluster.until(lambda: phase(cluster).over)
    cluster.restart_manager()
    cluster.steps(2.0)
    assert phase(cluster) is Phase.FINISHED
    assert cluster.manager.report().sinks["out"].epochs == 5


@pytest.mark.parametrize("final", [True, False])
def test_failures_that_cannot_be_mended_end_the_run(cluster: Cluster, final: bool) -> None:
    cluster.broken[COUNTS] = failure(final=final)
    before = cluster.generations.get(COUNTS, 0)
    cluster.until(lambda: phase(cluster).over, seconds=5)
    report = cluster.manager.report()
    assert (report.verdict, cluster.generations[COUNTS] - before) == ("failed", 0 if final else 3)
    assert report.failure == failure(final=final)
    cluster.restart_manager()
    assert cluster.manager.report().failure == failure(final=final)


def test_a_bag_that_cannot_be_made_again_is_named_after_a_restart_too(cluster: Cluster) -> None:
    lost = failure(damaged=((SliceId("words", 0), 3),))
    cluster.manager.fail(lost)
    cluster.restart_manager()
    assert cluster.manager.report().failure == lost


def test_a_wrong_topology_ends_the_run_with_the_reason(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.topology.operator("words", name="bad", slices=2)(one)
    operators = OPERATORS | {"bad": Analysis(stateful=True, output="{}")}
    cluster.until(lambda: phase(cluster) is Phase.CHECKING)
    cluster.manager.hear("node-1", Checked(operators=operators))
    found = cluster.manager.report().failure
    assert found is not None
    assert "bad" in found.what
    assert "why:" not in found.what, "the parts of the error stay apart"
    assert "key" in found.fix


def test_an_application_that_changed_is_refused(cluster: Cluster) -> None:
    cluster.store.keep({"phase": "gathering"})
    cluster.restart_manager()
    cluster.topology.operators.pop()
    changed = OPERATORS | {"counts": Analysis(stateful=False, output="{}")}
    cluster.manager.connect(Hello(node="node-9", token="", pid=1), lambda _: None)
    cluster.manager.hear("node-9", Heartbeat(ready=True))
    cluster.manager.memory.phase = Phase.CHECKING
    cluster.manager.hear("node-9", Checked(operators=changed))
    found = cluster.manager.report().failure
    assert found is not None
    assert "counts" in found.what


def test_what_spark_finds_changed_is_refused_by_name(cluster: Cluster) -> None:
    cluster.store.keep({"phase": "gathering"})
    cluster.restart_manager()
    cluster.manager.connect(Hello(node="node-9", token="", pid=1), lambda _: None)
    cluster.manager.memory.phase = Phase.CHECKING
    other = Analysis(stateful=True, output='{"type": "struct", "fields": [{"name": "n", "type": "long"}]}')
    cluster.manager.hear("node-9", Checked(operators=OPERATORS | {"counts": other}))
    found = cluster.manager.report().failure
    assert found is not None
    assert "'counts' has columns=n long" in found.what
    assert "another --home" in found.fix


def test_a_manager_that_comes_back_to_an_edited_file_says_so(cluster: Cluster) -> None:
    cluster.topology = word_count(counts=3)
    cluster.restart_manager()
    found = cluster.manager.report().failure
    assert found is not None
    assert "operator 'counts' has slices=3, and had 2" in found.what
    assert phase(cluster) is Phase.FAILED


def test_a_manager_that_comes_back_to_the_same_file_goes_on(cluster: Cluster) -> None:
    cluster.topology = word_count()
    cluster.restart_manager()
    assert phase(cluster) is Phase.RUNNING


def test_a_second_answer_to_a_check_changes_nothing(cluster: Cluster) -> None:
    """A node may answer late, when another was asked in the meantime."""
    before = cluster.store.fact("rhythm"), cluster.store.fact("running_since")
    cluster.steps(1.0)
    cluster.manager.hear("node-1", Checked(operators=OPERATORS))
    cluster.manager.hear("node-1", Checked(failure=failure(final=True)))
    assert (cluster.store.fact("rhythm"), cluster.store.fact("running_since")) == before
    assert phase(cluster) is Phase.RUNNING


def test_the_check_is_repeated_when_its_node_dies(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, nodes=2)
    sent: dict[str, list[Any]] = {"node-1": [], "node-2": []}
    for name, messages in sent.items():
        cluster.manager.connect(Hello(node=name, token="", pid=1), messages.append)
        cluster.manager.hear(name, Heartbeat(ready=True))
    cluster.manager.tick()
    asked = next(name for name, messages in sent.items() if Check() in messages)
    other = next(name for name in sent if name != asked)
    for _ in range(1250):
        cluster.now += BEAT_S
        cluster.manager.hear(other, Heartbeat(ready=True))
        cluster.manager.tick()
    assert Check() in sent[other]


# -- nodes


def test_a_lost_node_costs_one_recovery_and_no_epoch(cluster: Cluster) -> None:
    hosted = {s for s, hosts in cluster.hosts().items() if hosts[0][0] == "node-2"}
    cluster.kill("node-2")
    cluster.until(cluster.settled)
    assert {s for s, generation in cluster.generations.items() if generation == 2} == hosted
    lost = [event for event in cluster.manager.events() if event.kind == "node_lost"]
    assert [event.fields["node"] for event in lost] == ["node-2"]
    assigned = [e for e in cluster.manager.events() if e.kind == "assigned" and e.cause == lost[0].number]
    assert {event.fields["slice"] for event in assigned} == {str(s) for s in hosted}


def test_a_frozen_node_that_thaws_is_told_to_stop(cluster: Cluster) -> None:
    cluster.nodes["node-2"].frozen = True
    cluster.until(lambda: "node_lost" in kinds(cluster))
    cluster.steps(1.0)
    cluster.heal()
    cluster.until(cluster.settled)
    assert cluster.manager.state().lost == ()


@pytest.mark.parametrize("replace", [True, False])
def test_a_replacement_is_asked_for(tmp_path: Path, replace: bool) -> None:
    cluster = Cluster(tmp_path, replace=replace)
    cluster.until(lambda: cluster.delivered > 0)
    cluster.kill("node-1")
    cluster.until(lambda: "node_lost" in kinds(cluster))
    assert cluster.manager.state().replacements == int(replace)
    cluster.restart_manager()
    assert cluster.manager.state().replacements == int(replace)


def test_a_node_that_comes_back_needs_no_replacement(tmp_path: Path) -> None:
    """On a machine that is too busy nodes are given up and come back all the time; each loss asked for one more."""
    cluster = Cluster(tmp_path, replace=True)
    cluster.until(lambda: cluster.delivered > 0)
    for _ in range(3):
        cluster.nodes["node-2"].frozen = True
        cluster.until(lambda: cluster.manager.state().lost == ("node-2",))
        assert cluster.manager.state().replacements == 1
        cluster.heal()
        cluster.until(lambda: cluster.manager.state().lost == ())
        assert cluster.manager.state().replacements == 0
    cluster.restart_manager()
    assert cluster.manager.state().replacements == 0


# -- restarts of the manager


@pytest.mark.parametrize("away_s", [0.0, 1.0, GRACE_S - 1.0])
def test_nodes_that_call_again_in_time_keep_their_slices(cluster: Cluster, away_s: float) -> None:
    before = cluster.store.assignments()
    for node in cluster.nodes.values():
        node.reachable = False
    cluster.restart_manager()
    cluster.steps(away_s)
    cluster.heal()
    delivered = cluster.delivered
    cluster.until(lambda: cluster.delivered > delivered + 3)
    assert cluster.store.assignments() == before
    assert "node_lost" not in kinds(cluster)


def test_nodes_that_do_not_call_again_are_lost_after_the_grace(cluster: Cluster) -> None:
    cluster.kill("node-2")
    cluster.restart_manager()
    began = cluster.now
    found: list[Any] = []
    while not any(isinstance(i, LoseNode) for i in found):
        found = list(cluster.step())
        assert cluster.now < began + GRACE_S + 2
    assert cluster.now > began + GRACE_S
    cluster.until(cluster.settled)


def test_a_restart_at_any_tick_of_a_recovery_changes_nothing_in_the_end(tmp_path: Path) -> None:
    for ticks in range(0, 12, 2):
        home = tmp_path / str(ticks)
        home.mkdir()
        cluster = Cluster(home, epochs=30)
        cluster.until(lambda c=cluster: c.delivered > 2)  # type: ignore[misc]
        cluster.kill("node-1")
        cluster.steps(ticks * 0.1)
        cluster.restart_manager()
        cluster.until(lambda c=cluster: phase(c).over)  # type: ignore[misc]
        assert cluster.manager.report().verdict == "exact"


def test_a_damaged_bag_is_made_again_even_if_its_finder_dies_unheard(cluster: Cluster) -> None:
    hosts = {slice_id: found[0][0] for slice_id, found in cluster.hosts().items()}
    pairs = [(SliceId("lines", n), SliceId("words", n)) for n in range(2)]
    source, reader = next((source, hosts[words]) for source, words in pairs if hosts[source] != hosts[words])
    cluster.cut_off(reader)
    log, newest = cluster.world.log, cluster.world.log.newest(source)
    cluster.until(lambda: log.newest(source) > newest + 4)
    log.damage(source, back=2)
    cluster.steps(2)
    cluster.kill(reader)
    cluster.until(lambda: not log.damaged(source, 0))
    cluster.until(cluster.settled)
    delivered = cluster.delivered
    cluster.until(lambda: cluster.delivered > delivered + 10)


def test_any_number_of_torn_bags_is_made_again(tmp_path: Path) -> None:
    """A power cut tears what was written last, and replicas replay it: none of them gets on before all are mended."""
    cluster = Cluster(tmp_path, epochs=60)
    cluster.until(lambda: cluster.delivered > 8)
    for name in list(cluster.nodes):
        cluster.restart(name)
    assert cluster.tear() > 20
    cluster.until(lambda: phase(cluster).over)
    assert cluster.manager.report().verdict == "exact"


@pytest.mark.parametrize("operator", ["lines", "words", "counts"])
def test_a_bag_older_than_the_two_checkpoints_of_its_slice_is_made_again(tmp_path: Path, operator: str) -> None:
    """Its reader stands still while its slice ships on; the oldest bag the reader may ask for goes bad meanwhile."""
    cluster, slice_id = Cluster(tmp_path, nodes=7, epochs=80, misses=100), SliceId(operator, 0)
    cluster.until(lambda: cluster.delivered > 12 and cluster.settled())
    reader = cluster.layout.readers(slice_id)[0]
    host = next(a.node for a in cluster.store.assignments() if a.slice == reader)
    cluster.nodes[host].frozen = True
    log, newest = cluster.world.log, cluster.world.log.newest(slice_id)
    cluster.until(lambda: log.newest(slice_id) >= newest + 12)
    if operator != "lines":
        shipped = cluster.world.stores[slice_id].epochs()
        assert shipped[1] > newest + 1, "both of its newest checkpoints are past the damage"
    for epoch, bag in log.of(slice_id).bags.items():
        bag.damaged = epoch <= newest + 1
    cluster.kill(host)
    cluster.until(lambda: phase(cluster).over)
    assert cluster.manager.report().verdict == "exact"
    assert not log.damaged(slice_id, 0)


# -- receipts, recoveries, costs


def receipt(epoch: int, **changes: Any) -> Receipt:
    usual: dict[str, Any] = {"rows": 1, "digest": "d", "at": float(epoch)}
    return Receipt(sink="out", epoch=epoch, **(usual | changes))


def test_receipts_are_confirmed_up_to_the_first_gap(cluster: Cluster) -> None:
    sent: list[Any] = []
    cluster.manager.connect(Hello(node="node-9", token="", pid=1), sent.append)
    first = cluster.delivered
    cluster.manager.hear("node-9", Heartbeat(ready=True, receipts=(receipt(first), receipt(first + 2))))
    assert sent[-1].epoch == first
    cluster.manager.hear("node-9", Heartbeat(ready=True, receipts=(receipt(first + 1),)))
    assert sent[-1].epoch == first + 2


def test_a_recovery_is_noted_once_with_its_steps(cluster: Cluster) -> None:
    status = ReplicaStatus(
        slice=SliceId("counts", 0), generation=2, steps=Steps(replay=1.5, replayed=3, done=True, done_at=7.0)
    )
    for _ in range(3):
        cluster.manager.hear("node-1", Heartbeat(ready=True, replicas=(status,)))
    cluster.restart_manager()
    cluster.nodes["node-1"].connect()
    cluster.manager.hear("node-1", Heartbeat(ready=True, replicas=(status,)))
    recovered = [event for event in cluster.manager.events() if event.kind == "recovered"]
    assert [(e.fields["slice"], e.fields["replay"], e.fields["replayed"]) for e in recovered] == [("counts[0]", 1.5, 3)]


def test_an_operator_that_is_not_deterministic_is_named_once(cluster: Cluster) -> None:
    status = ReplicaStatus(slice=SliceId("counts", 0), generation=1, diverged=4)
    for _ in range(2):
        cluster.manager.hear("node-1", Heartbeat(ready=True, replicas=(status,)))
    assert kinds(cluster).count("diverged") == 1
    assert cluster.manager.report().diverged == ("counts[0]",)


def test_what_has_diverged_is_not_forgotten_with_the_manager(cluster: Cluster) -> None:
    """Nor with the node that said so: nobody will ever say it again."""
    status = ReplicaStatus(slice=SliceId("counts", 0), generation=1, diverged=4)
    cluster.manager.hear("node-1", Heartbeat(ready=True, replicas=(status,)))
    cluster.kill("node-1")
    cluster.restart_manager()
    report = cluster.manager.report()
    assert (report.diverged, report.verdict) == (("counts[0]",), "diverged")
    cluster.manager.finish()
    cluster.until(lambda: cluster.manager.state().phase == "finished")
    cluster.restart_manager()
    assert cluster.manager.report().verdict == "diverged"


def test_costs_survive_nodes_and_managers(cluster: Cluster) -> None:
    before = cluster.manager.report()
    status = ReplicaStatus(slice=SliceId("counts", 0), generation=7, bytes_published=10, bytes_shipped=20, rows_in=5)
    newer = status.model_copy(update={"generation": 8, "bytes_published": 1})
    cluster.manager.hear("node-1", Heartbeat(ready=True, replicas=(status,), cpu_s=2.5, memory_bytes=100))
    cluster.manager.hear("node-1", Heartbeat(ready=True, replicas=(newer,), cpu_s=3.0, memory_bytes=50))
    cluster.now += 2
    cluster.manager.tick()
    cluster.restart_manager()
    costs = cluster.manager.report().costs
    assert (costs.cpu_s["node-1"], costs.peak_memory_bytes["node-1"]) == (3.0, 100)
    spent = (costs.bytes_published - before.costs.bytes_published, costs.bytes_shipped - before.costs.bytes_shipped)
    assert spent == (11, 40)
    assert cluster.manager.report().slices["counts[0]"].rows_in == before.slices["counts[0]"].rows_in + 10


def test_a_sink_is_deployed_where_its_receipts_end(cluster: Cluster) -> None:
    out = SliceId("out", 0)
    cluster.kill(cluster.hosts()[out][0][0])
    delivered = cluster.delivered
    cluster.until(lambda: any(out in node.replicas for node in cluster.nodes.values()))
    (replica,) = (node.replicas[out] for node in cluster.nodes.values() if out in node.replicas)
    assert replica.deploy.resume_at == delivered


def test_a_node_that_was_given_up_has_to_introduce_itself_again(cluster: Cluster) -> None:
    assert not cluster.manager.hear("stranger", Heartbeat(ready=True))
    cluster.nodes["node-1"].disconnect()
    assert not cluster.manager.hear("node-1", Heartbeat(ready=True))


def test_an_old_connection_that_closes_late_does_not_close_the_new_one(cluster: Cluster) -> None:
    node = cluster.nodes["node-1"]
    old = node._send
    node.connect()
    assert old is not None
    cluster.manager.disconnect("node-1", old)
    assert next(view for view in cluster.manager.state().nodes if view.name == "node-1").connected


def test_a_failure_that_cannot_be_written_down_still_ends_the_run(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(cluster.store, "keep", full)
    cluster.manager.fail(failure())
    assert phase(cluster) is Phase.FAILED
    assert cluster.manager.tick() == ()


def schemes(cluster: Cluster) -> set[str]:
    return {one.scheme for one in cluster.manager.state().slices if one.kind == "operator"}


def test_with_an_objective_the_controller_chooses(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, recovery=Recovery(objective="30 s"))
    cluster.until(lambda: cluster.delivered > 0)
    assert schemes(cluster) == {"active_replication"}, "the safe side, as long as nothing is known"
    cluster.until(lambda: "active_replication" not in schemes(cluster))
    report = cluster.manager.report()
    assert report.decisions
    assert all("of 30 s" in decision.sentence for decision in report.decisions)
    assert {one.before for one in report.transitions} >= {"active_replication"}
    shown = [one for one in cluster.manager.state().slices if one.kind == "operator"]
    assert all(one.reason and one.objective_s == 30.0 and len(one.predicted_s) == 6 for one in shown)


def test_what_must_be_back_at_once_stays_active(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, recovery=Recovery(objective=0))
    cluster.until(lambda: cluster.delivered > 0)
    cluster.steps(20.0)
    assert schemes(cluster) == {"active_replication"}


def test_every_recovery_is_predicted_and_compared(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, scheme="passive_standby_hot")
    cluster.until(lambda: cluster.delivered > 20)
    cluster.until(cluster.settled)
    # Of a replica that has just started nothing is concluded.
    cluster.steps(8.0)
    cluster.kill(next(a.node for a in cluster.store.assignments() if a.slice == COUNTS))
    cluster.until(lambda: any(e.kind == "recovered" for e in cluster.manager.events()))
    cluster.until(cluster.settled)
    predicted = [e.fields["predicted"] for e in cluster.manager.events() if e.kind == "recovered"]
    assert any(steps and steps["detect"] > 0 for steps in predicted)


def test_a_switch_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    with pytest.raises(InvalidInput, match="cannot be switched"):
        cluster.manager.switch(COUNTS, Scheme.DEPLOYED)
    cluster.until(lambda: cluster.delivered > 0)
    for slice_id in (SliceId("lines", 0), SliceId("nobody", 0)):
        with pytest.raises(InvalidInput, match="cannot be switched"):
            cluster.manager.switch(slice_id, Scheme.DEPLOYED)


# -- two processes of one name


def test_a_second_process_of_a_name_is_refused_while_the_first_is_connected(cluster: Cluster) -> None:
    again = cluster.nodes["node-1"].hello
    assert cluster.manager.refuses(again) is None, "the same process may call again"
    other = again.model_copy(update={"instance": "another machine"})
    found = cluster.manager.refuses(other)
    assert found is not None
    assert "there is a node node-1 already" in found.what
    assert "--name" in found.fix
    cluster.kill("node-1")
    assert cluster.manager.refuses(other) is None, "started again before anybody gave it up"
