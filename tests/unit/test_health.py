"""What people are shown follows from states and events alone."""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders import word_count, word_count_layout

from understudy.model.events import (
    Assigned,
    Event,
    FaultInjected,
    Happening,
    NodeLost,
    Promoted,
    Protected,
    Recovered,
)
from understudy.model.messages import Failure, ReplicaStatus, State, Steps
from understudy.model.names import SliceId
from understudy.model.page import Health
from understudy.model.recovery import Scheme
from understudy.model.view import NodeState, SliceState
from understudy.reporting.graph import plan_of
from understudy.reporting.health import judge, may_lag
from understudy.reporting.recoveries import past_recoveries
from understudy.reporting.sampling import Counters, cores, rows_per_s
from understudy.reporting.spending import cost_lines

FAILED = Failure(what="it broke", why="", fix="")


def node(name: str = "node-1", *replicas: ReplicaStatus, connected: bool = True, **more: Any) -> NodeState:
    usual: dict[str, Any] = {"ready": True, "pid": 1, "domain": "", "cpu_s": 0.0, "memory_bytes": 0}
    return NodeState(name=name, connected=connected, replicas=replicas, **(usual | more))


def entry(**changes: Any) -> SliceState:
    usual: dict[str, Any] = {"slice": "counts[0]", "kind": "operator", "scheme": "deployed", "protection": "deployed"}
    return SliceState(**(usual | {"primary": "node-1", "state": "running"} | changes))


def replica(state: State = State.RUNNING, generation: int = 1, done: bool = False, **more: Any) -> ReplicaStatus:
    return ReplicaStatus(slice=SliceId("counts", 0), generation=generation, state=state, steps=Steps(done=done), **more)


@pytest.mark.parametrize(
    ("slice_", "found", "host", "worked", "expected"),
    [
        (entry(), replica(), node(), True, Health.HEALTHY),
        (entry(), replica(State.STARTING), node(), False, Health.STARTING),
        (entry(), None, node(), False, Health.STARTING),
        (entry(), None, node(), True, Health.DOWN),
        (entry(), replica(State.STARTING, 2), node(), False, Health.DOWN),
        (entry(), replica(), node(connected=False), True, Health.DOWN),
        (entry(), None, None, True, Health.DOWN),
        (entry(), replica(State.FAILED, failure=FAILED), node(), True, Health.DOWN),
        (entry(), replica(generation=2), node(), True, Health.CATCHING_UP),
        (entry(), replica(generation=2, done=True), node(), True, Health.HEALTHY),
        (entry(protection="passive_replication"), replica(), node(), True, Health.DEGRADED),
        (entry(scheme="passive_replication"), replica(), node(), True, Health.HEALTHY),
        (entry(state="tentative"), replica(), node(), True, Health.TENTATIVE),
        (entry(scheme="", protection=""), replica(), node(), True, Health.HEALTHY),
        (entry(standing_in=True, secondary="node-2"), replica(), node(connected=False), True, Health.DEGRADED),
        (entry(lag=24, may_lag=10), replica(), node(), True, Health.DEGRADED),
        (entry(lag=10, may_lag=10), replica(), node(), True, Health.HEALTHY),
        (entry(lag=24), replica(), node(), True, Health.HEALTHY),
        (entry(lag=24, may_lag=10), replica(State.STARTING, 2), node(), True, Health.DOWN),
    ],
)
def test_the_worst_that_is_true_decides(
    slice_: SliceState, found: ReplicaStatus | None, host: NodeState | None, worked: bool, expected: Health
) -> None:
    health, why = judge(slice_, found, host, worked)
    assert health is expected
    assert why


@pytest.mark.parametrize(
    ("objective_s", "epoch_s", "backlog", "epochs"),
    [
        (None, 1.0, 100, 10),
        (None, 0.1, 100, 30),
        (None, 1.0, 8, 5),
        (7.0, 1.0, 100, 7),
        (2.0, 1.0, 100, 5),
        (60.0, 1, 100, 10),
    ],
)
def test_how_far_a_slice_may_be_behind(objective_s: float | None, epoch_s: float, backlog: int, epochs: int) -> None:
    assert may_lag(objective_s, epoch_s, backlog) == epochs


def test_the_plan_before_and_after_spark_was_asked() -> None:
    before, after = plan_of(word_count(), None), plan_of(word_count(), word_count_layout())
    for plan in (before, after):
        assert [(v.name, v.column) for v in plan.vertices] == [("lines", 0), ("words", 1), ("counts", 2), ("out", 3)]
        assert [edge.how for edge in plan.edges] == ["one to one", "by word", "all"]
    assert [v.stateful for v in after.vertices] == [False, False, True, False]


# -- rates


def test_rates_come_from_two_looks() -> None:
    before = Counters(10.0, {(SliceId("a", 0), 1): 100}, {"node-1": 4.0})
    now = Counters(12.0, {(SliceId("a", 0), 1): 300, (SliceId("b", 0), 1): 50}, {"node-1": 5.0, "node-2": 9.0})
    assert rows_per_s([before, now]) == 125.0
    assert (cores(before, now, "node-1"), cores(before, now, "node-2")) == (0.5, 0.0)


def test_counters_that_start_again_give_no_negative_rates() -> None:
    before = Counters(10.0, {(SliceId("a", 0), 1): 100}, {"node-1": 40.0})
    assert rows_per_s([before, Counters(12.0, {(SliceId("a", 0), 2): 10}, {})]) == 5.0
    assert cores(before, Counters(12.0, {}, {"node-1": 1.0}), "node-1") == 0.0
    assert rows_per_s([before, Counters(10.0, {(SliceId("a", 0), 1): 900}, {})]) == 0.0


def test_rows_that_come_an_epoch_at_a_time_give_a_steady_rate() -> None:
    looks = [Counters(0.5 * look, {(SliceId("a", 0), 1): 200 * (look // 2)}, {}) for look in range(40)]
    rates = {rows_per_s(looks[at : at + 10]) for at in range(30)}
    assert rates == {200.0}
    stalled = [*looks, *(Counters(20 + 0.5 * n, looks[-1].rows, {}) for n in range(10))]
    assert rows_per_s(stalled[-8:]) == 0.0


# -- costs


def test_costs_stand_between_none_and_always_active() -> None:
    primary = replica(cpu_s=10.0, state_bytes=100, bytes_published=50, bytes_received=50, bytes_shipped=20)
    secondary = replica(primary=False, cpu_s=2.0, state_bytes=100, bytes_pulled=20)
    lines = {line.resource: line for line in cost_lines((node("a", primary), node("b", secondary), node("c")))}
    assert (lines["CPU"].none, lines["CPU"].now, lines["CPU"].always_active) == (10.0, 12.0, 20.0)
    assert (lines["network"].none, lines["network"].now, lines["network"].always_active) == (100, 140, 220)
    assert (lines["nodes"].none, lines["nodes"].now, lines["nodes"].always_active) == (1, 2, 2)
    assert lines["state in memory"].now == 200


def test_nodes_that_do_not_tell_replicas_apart_count_whole() -> None:
    lines = {line.resource: line for line in cost_lines((node("a", replica(), cpu_s=7.0),))}
    assert (lines["CPU"].none, lines["CPU"].now) == (7.0, 7.0)


# -- recoveries


def story(*entries: tuple[float, int | None, Happening]) -> list[Event]:
    return [
        Event(number=n + 1, at=at, kind=what.kind, text=what.text, fields=what.to_fields(), cause=cause)
        for n, (at, cause, what) in enumerate(entries)
    ]


COUNTS = SliceId("counts", 0)
BACK = Recovered(slice=COUNTS, generation=2, deploy=0.5, replay=0.25, replayed=3, done_at=14.0)


def protected(scheme: Scheme) -> Protected:
    return Protected(slice=COUNTS, scheme=scheme)


def placed(record: type[Assigned] | type[Promoted]) -> Assigned | Promoted:
    return record(slice=COUNTS, node="node-1", generation=2, reason=f"{record.kind} happened")


def test_a_recovery_leads_back_to_the_fault() -> None:
    events = story(
        (1.0, None, protected(Scheme.DEPLOYED)),
        (10.1, None, FaultInjected(spec="kill:node-2@10s", target="node-2", at=10.0)),
        (10.5, None, NodeLost(node="node-2", reason="node_lost happened")),
        (10.6, 3, placed(Assigned)),
        (10.7, None, protected(Scheme.PASSIVE_REPLICATION)),
        (14.0, 4, BACK),
    )
    (found,) = past_recoveries(events)
    assert (found.cause, found.scheme, found.total_s, found.replayed) == ("kill:node-2@10s", "deployed", 4.0, 3)
    assert found.steps == {"detect": 0.5, "deploy": 0.5, "replay": 0.25}


def test_a_node_needs_no_injection_to_die() -> None:
    events = story(
        (0.5, None, protected(Scheme.ACTIVE_STANDBY)),
        (1.0, None, FaultInjected(spec="kill:node-1@1s", target="node-1", at=1.0)),
        (10.5, None, NodeLost(node="node-2", reason="node_lost happened")),
        (10.6, 3, placed(Promoted)),
        (11.0, 4, BACK.model_copy(update={"done_at": 11.0, "predicted": {"replay": 1.0}})),
    )
    (found,) = past_recoveries(events)
    assert (found.cause, found.total_s, found.scheme) == ("node_lost happened", 0.5, "active_standby")
    assert found.predicted == {"replay": 1.0}


def test_a_move_and_a_forgotten_cause() -> None:
    events = story((12.0, None, placed(Assigned)), (14.0, 1, BACK))
    (moved,) = past_recoveries(events)
    assert (moved.cause, moved.total_s) == ("assigned happened", 2.0)
    (forgotten,) = past_recoveries(events[1:])
    assert (forgotten.cause, forgotten.total_s) == ("not known any more", 0.75)
