"""A JVM that dies or stops while the Python process beside it goes on: noticed like the end of its node."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.simulated.cluster import Cluster
from tests.snapshots import COUNTS, DETECTOR, assigns, decided, healthy, node, replica, snapshot

from understudy.control.cluster.detector import is_stuck, stalls
from understudy.control.cluster.instructions import FailRun, LoseNode
from understudy.control.cluster.reactions import react
from understudy.errors import InvalidInput
from understudy.model.capabilities import ROWS
from understudy.model.config import DEFAULTS
from understudy.model.faults import Fault
from understudy.model.messages import Heartbeat, Steps
from understudy.model.names import SliceId
from understudy.model.page import Health
from understudy.model.recovery import Reaction, Scheme
from understudy.model.snapshot import Assignment, Secondary
from understudy.model.view import NodeState, SliceState
from understudy.reporting.health import judge
from understudy.runtime.link import Link
from understudy.runtime.processes import signal_jvm
from understudy.stream.failures import QueryEnded
from understudy.stream.jvm_pulse import Pulse, how_it_ended, watch_end
from understudy.stream.query import QueryReplica

MAX_FAILURES = DEFAULTS.recovery.max_failures
LIMITS = DEFAULTS.detector
STUCK_S = DEFAULTS.detector.stuck_s

HOT = Scheme.PASSIVE_STANDBY_HOT

# -- the rules


@pytest.mark.parametrize(("jvm_silent_s", "dead"), [(0.0, False), (3.0, False), (3.01, True)])
def test_a_jvm_that_does_not_move_counts_as_silence(jvm_silent_s: float, dead: bool) -> None:
    view = node("node-1", silent_s=0.05, jvm_silent_s=jvm_silent_s)
    assert DETECTOR.dead(view) is dead
    assert DETECTOR.dead(view, covered=True) is False, "others do its work meanwhile"
    assert DETECTOR.suspects(view) is (jvm_silent_s > 0.15)


def test_the_reason_names_the_jvm() -> None:
    (lost,) = decided(snapshot(node("node-1", silent_s=0.05, jvm_silent_s=4.0)))
    assert isinstance(lost, LoseNode)
    assert lost.reason == "the JVM of node-1 has not moved for 4.00 s"


def test_a_last_word_is_believed_at_once() -> None:
    (lost,) = decided(snapshot(node("node-1", gone="its JVM was killed by SIGKILL")))
    assert isinstance(lost, LoseNode)
    assert lost.reason == "node-1 ended: its JVM was killed by SIGKILL"


@pytest.mark.parametrize(
    ("stalled_s", "batch_s", "done", "expected"),
    [(9.0, 0.5, True, False), (11.0, 0.5, True, True), (11.0, 2.0, True, False), (11.0, 0.5, False, False)],
)
def test_a_replica_is_suspected_when_a_batch_takes_far_longer_than_the_last(
    stalled_s: float, batch_s: float, done: bool, expected: bool
) -> None:
    assert stalls(replica(COUNTS, stalled_s=stalled_s, batch_s=batch_s, steps=Steps(done=done)), LIMITS) is expected


def test_a_suspected_replica_wakes_its_secondary_until_it_moves_again() -> None:
    slice_ = Assignment(COUNTS, "node-1", 1, scheme=HOT, secondary=Secondary("node-2", 2), issued=2)
    secondary = node("node-2", replica(COUNTS, 2, primary=False, capabilities=ROWS[HOT], asked=ROWS[HOT]))
    layout = healthy().layout
    assert layout is not None

    def reaction(stalled_s: float, *, standing_in: bool) -> list[bool]:
        nodes = {"node-1": node("node-1", replica(COUNTS, stalled_s=stalled_s)), "node-2": secondary}
        found = react([replace(slice_, standing_in=standing_in)], nodes, layout, DETECTOR, Reaction.SPECULATIVE)
        return [change.assignment.standing_in for change in found]

    assert reaction(0.2, standing_in=False) == []
    assert reaction(15.0, standing_in=False) == [True]
    assert reaction(15.0, standing_in=True) == [], "its node is well, but it is not"
    assert reaction(0.0, standing_in=True) == [False]


def test_a_replica_that_never_finishes_fails_and_is_tried_again() -> None:
    base = healthy()
    hung = replica(COUNTS, stalled_s=STUCK_S + 1)
    assert is_stuck(hung, LIMITS)
    assert not is_stuck(replica(COUNTS, stalled_s=STUCK_S + 1, batch_s=60.0), LIMITS), "its batches take that long"
    nodes = tuple(
        replace(view, replicas=tuple(hung if r.slice == COUNTS else r for r in view.replicas)) for view in base.nodes
    )
    (again,) = assigns(decided(replace(base, nodes=nodes))).values()
    assert (again.slice, again.generation, again.failures) == (COUNTS, 2, 1)
    tired = tuple(replace(a, failures=MAX_FAILURES) if a.slice == COUNTS else a for a in base.assignments)
    (end,) = decided(replace(base, nodes=nodes, assignments=tired))
    assert isinstance(end, FailRun)
    assert "has finished nothing" in end.failure.what


@pytest.mark.parametrize(
    ("jvm_silent_s", "stalled_s", "expected"),
    [(0.0, 0.0, Health.HEALTHY), (2.0, 0.0, Health.DOWN), (0.0, 15.0, Health.DEGRADED)],
)
def test_it_is_not_shown_as_healthy(jvm_silent_s: float, stalled_s: float, expected: Health) -> None:
    kind: dict[str, Any] = {"kind": "operator", "scheme": "passive_replication", "protection": "passive_replication"}
    entry = SliceState(slice=str(COUNTS), primary="node-1", **kind)
    own: dict[str, Any] = {"connected": True, "ready": True, "domain": "", "cpu_s": 0.0, "memory_bytes": 0}
    view = NodeState(name="node-1", pid=1, replicas=(), jvm_silent_s=jvm_silent_s, **own)
    assert judge(entry, replica(COUNTS, stalled_s=stalled_s), view, True)[0] is expected


# -- a cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    made = Cluster(tmp_path, misses=30)
    made.until(lambda: made.delivered > 2)
    return made


def host(cluster: Cluster) -> str:
    return next(a.node for a in cluster.store.assignments() if a.slice == SliceId("counts", 0))


def texts(cluster: Cluster, kind: str) -> list[str]:
    return [event.text for event in cluster.manager.events() if event.kind == kind]


def test_a_node_whose_jvm_stops_is_given_up_once_and_comes_back_when_it_thaws(cluster: Cluster) -> None:
    victim, joined = host(cluster), len(texts(cluster, "node_joined"))
    cluster.freeze_jvm(victim)
    cluster.steps(10.0)
    (text,) = texts(cluster, "node_lost")
    assert text.startswith(f"the JVM of {victim} has not moved for 3.")
    before = cluster.delivered
    cluster.steps(1.0)
    assert cluster.delivered > before, "others have taken over"
    assert len(texts(cluster, "node_joined")) == joined, "it does not call while its JVM stands still"

    stale = {s: h.deploy.generation for s, h in cluster.nodes[victim].replicas.items()}
    cluster.thaw(victim)
    cluster.steps(2.0)
    current = {a.slice: (a.node, a.generation) for a in cluster.store.assignments()}
    for slice_id, generation in stale.items():
        hosted = cluster.nodes[victim].replicas.get(slice_id)
        assert hosted is None or (victim, hosted.deploy.generation) == current[slice_id], "it learned what it lost"
        assert current[slice_id][1] > generation
    assert len(texts(cluster, "node_lost")) == 1
    before = cluster.delivered
    cluster.steps(1.0)
    assert cluster.delivered > before


def test_a_short_stop_of_a_jvm_costs_nothing(cluster: Cluster) -> None:
    victim = host(cluster)
    cluster.freeze_jvm(victim)
    cluster.steps(0.3)
    cluster.thaw(victim)
    cluster.steps(2.0)
    assert texts(cluster, "node_lost") == []


def test_a_node_whose_jvm_dies_is_given_up_in_the_same_tick(cluster: Cluster) -> None:
    victim = host(cluster)
    cluster.kill_jvm(victim)
    cluster.step()
    assert texts(cluster, "node_lost") == [f"{victim} ended: its JVM was killed by SIGKILL"]
    assert host(cluster) != victim


# -- the node's side


def test_a_pulse_is_as_old_as_its_last_change(tmp_path: Path) -> None:
    now = 100.0
    pulse = Pulse(tmp_path / "node" / "pulse", clock=lambda: now)
    now += 2.0
    assert pulse.silent_s() == 2.0
    (tmp_path / "node" / "pulse").write_bytes((7).to_bytes(8, sys.byteorder))
    assert pulse.silent_s() == 0.0
    now += 0.5
    assert pulse.silent_s() == 0.5


def test_the_end_of_a_process_is_told_at_once() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    ended, codes = threading.Event(), []

    def hear(code: int) -> None:
        codes.append(code)
        ended.set()

    watch_end(process, hear)
    process.kill()
    assert ended.wait(30)
    assert how_it_ended(codes[0]) == "its JVM was killed by SIGKILL"
    assert "out of memory" in how_it_ended(3)
    assert how_it_ended(1) == "its JVM ended with exit code 1"


def test_a_node_that_is_not_fit_does_not_call() -> None:
    asked = threading.Event()

    def fit() -> bool:
        asked.set()
        return False

    hello: Any = SimpleNamespace(model_dump_json=lambda: pytest.fail("it introduced itself"))
    link = Link("ws://127.0.0.1:9/nodes", hello, lambda: Heartbeat(ready=True), lambda _: None, fit=fit)
    link.start()
    assert asked.wait(30)
    link.close()


def test_a_query_that_ends_without_a_word_is_a_failure() -> None:
    found: list[BaseException] = []
    made: Any = SimpleNamespace(slice=COUNTS, give_up=found.append)
    QueryReplica.on_query_ended(made, None)
    assert isinstance(found[0], QueryEnded)


# -- causing it


def test_faults_that_hit_the_jvm_alone() -> None:
    kill, freeze = Fault.parse("kill:node-2/jvm@epoch5"), Fault.parse("freeze:node-2/jvm@8s+5s")
    assert (kill.target, kill.jvm, kill.at_epoch) == ("node-2", True, 5)
    assert (freeze.target, freeze.jvm, freeze.length_s) == ("node-2", True, 5.0)
    assert not Fault.parse("kill:node-2@8s").jvm
    for wrong in (
        "kill:manager/jvm@5s",
        "starve:node-1/jvm@5s+1s",
        "vanish:node-1/jvm@5s",
        "freeze:node-1/jvm@5s",
        "kill:node-1/python@5s",
    ):
        with pytest.raises(InvalidInput):
            Fault.parse(wrong)


def test_only_the_java_child_is_hit(tmp_path: Path) -> None:
    """A child called java beside one that is not, below a process of ours."""
    java = tmp_path / "java"
    java.symlink_to("/bin/sleep")
    program = (
        "import subprocess, sys\n"
        f"java = subprocess.Popen(['{java}', '600'])\n"
        "other = subprocess.Popen(['sleep', '600'])\n"
        "print(java.pid, other.pid, flush=True)\n"
        "print(java.wait(), flush=True)\n"
        "print(other.poll(), flush=True)\n"
        "other.kill()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    signal_jvm(process.pid, signal.SIGKILL)
    assert process.stdout.readline().strip() == "-9"
    assert process.stdout.readline().strip() == "None"
    process.wait(30)
