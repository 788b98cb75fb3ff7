"""The report follows from receipts and events alone."""

from __future__ import annotations

import random
from typing import Any

import pytest

from understudy.model.events import (
    Assigned,
    DomainLost,
    Event,
    FaultInjected,
    Happening,
    ManagerStarted,
    NodeLost,
    Recovered,
)
from understudy.model.layout import Kind, Layout, Vertex
from understudy.model.messages import Receipt, ReplicaStatus, Steps
from understudy.model.names import SliceId
from understudy.model.recovery import Recovery
from understudy.model.report import SinkReport
from understudy.model.snapshot import Assignment, Phase
from understudy.model.tally import Tally, take
from understudy.reporting.chronicle import Chronicle
from understudy.reporting.recoveries import past_recoveries
from understudy.reporting.report import fault_reports, sink_report, slice_reports, tainted, verdict


def receipt(epoch: int, at: float | None = None, **changes: Any) -> Receipt:
    usual: dict[str, Any] = {"rows": epoch + 1, "digest": f"d{epoch}"}
    return Receipt(sink="out", epoch=epoch, at=float(epoch) if at is None else at, **(usual | changes))


def report_of(receipts: list[Receipt], duplicates: int, goal: int | None) -> SinkReport:
    """As the store would have taken them: up to the first gap into the tally, the others beyond it."""
    ordered = sorted(receipts, key=lambda r: r.epoch)
    unbroken = [r for number, r in enumerate(ordered) if r.epoch == number]
    tally = take(Tally(), unbroken).tally
    holes = [r.epoch for r in ordered if r.lost]
    return sink_report(tally, holes=holes, beyond=ordered[len(unbroken) :], duplicates=duplicates, goal=goal)


def test_the_digest_depends_on_the_rows_of_each_epoch_and_nothing_else() -> None:
    plain = [receipt(epoch) for epoch in range(5)]
    shuffled = random.Random(1).sample(plain, 5)
    late = [receipt(epoch, at=100.0 - epoch, fresh=False) for epoch in range(5)]
    digest = report_of(plain, 0, 5).digest
    assert report_of(shuffled, 0, 5).digest == digest
    assert report_of(late, 3, None).digest == digest
    for changed in (receipt(2, digest="other"), receipt(2, rows=0), receipt(7, rows=3, digest="d2")):
        assert report_of([*plain[:2], changed, *plain[3:]], 0, 5).digest != digest
    assert report_of(plain[:4], 0, 5).digest != digest


@pytest.mark.parametrize(
    ("epochs", "goal", "lost"),
    [
        ([0, 1, 2], 3, 0),
        ([0, 1, 2], None, 0),
        ([0, 2], None, 1),
        ([0, 2], 5, 3),
        ([], 3, 3),
        ([], None, 0),
        ([0, 1, 2, 3], 2, 0),
        ([0, 3], 2, 1),
    ],
)
def test_lost_epochs_are_those_without_a_receipt(epochs: list[int], goal: int | None, lost: int) -> None:
    report = report_of([receipt(epoch) for epoch in epochs], 0, goal)
    assert report.lost_epochs == lost
    assert report.epochs == len(epochs)
    assert report.rows == sum(epoch + 1 for epoch in epochs)
    assert verdict(Phase.FINISHED, {"out": report}, {}) == ("lossy" if lost else "exact")


def test_the_longest_silence_of_a_sink() -> None:
    times = [10.0, 11.0, 15.5, 15.6]
    assert report_of([receipt(n, at) for n, at in enumerate(times)], 0, 4).max_gap_s == 4.5
    assert report_of([receipt(0)], 0, 1).max_gap_s == 0


@pytest.mark.parametrize(
    ("phase", "duplicates", "expected"),
    [
        (Phase.FINISHED, 0, "exact"),
        (Phase.RUNNING, 0, "exact"),
        (Phase.FINISHED, 1, "at least once"),
        (Phase.FAILED, 0, "failed"),
        (Phase.FAILED, 1, "failed"),
    ],
)
def test_the_verdict(phase: Phase, duplicates: int, expected: str) -> None:
    assert verdict(phase, {"out": report_of([receipt(0)], duplicates, 1)}, {}) == expected


def test_what_is_lost_weighs_more_than_what_came_twice() -> None:
    sinks = {"lost": report_of([receipt(0)], 0, 2), "twice": report_of([receipt(0), receipt(1)], 1, 2)}
    assert [sink.delivered for sink in sinks.values()] == ["once", "at least once"]
    assert verdict(Phase.FINISHED, sinks, {}) == "lossy"


def a_layout(*, stateful: bool, deterministic: bool, guarantee: str = "precise") -> Layout:
    recovery = Recovery(guarantee=guarantee)
    return Layout((Vertex("noise", Kind.OPERATOR, 1, (), (), stateful, deterministic, recovery),))


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (a_layout(stateful=True, deterministic=True), "diverged"),
        (a_layout(stateful=True, deterministic=False), "diverged"),
        (a_layout(stateful=True, deterministic=True, guarantee="rollback"), "diverged"),
        (a_layout(stateful=False, deterministic=True), "diverged"),
        (a_layout(stateful=False, deterministic=False), "exact"),
        (a_layout(stateful=False, deterministic=True, guarantee="rollback"), "exact"),
    ],
)
def test_a_replay_that_differs_is_exact_only_where_it_may_and_nothing_remembers_it(
    layout: Layout, expected: str
) -> None:
    sinks = {"out": report_of([receipt(0)], 0, 1)}
    assert verdict(Phase.FINISHED, sinks, {}, tainted([SliceId("noise", 0)], layout)) == expected
    assert verdict(Phase.FINISHED, sinks, {}, tainted([], layout)) == "exact"


# -- faults and what followed


class Story:
    """Events in the order in which they happened."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, when: float, what: Happening, cause: int | None = None) -> int:
        number = len(self.events) + 1
        fields = what.to_fields()
        self.events.append(Event(number=number, at=when, kind=what.kind, text=what.text, fields=fields, cause=cause))
        return number

    def fault(self, at: float, spec: str) -> None:
        # The launcher reports a fault when it can, perhaps after the manager noticed it.
        target = spec.partition(":")[2].partition("@")[0]
        self.add(at + 0.2, FaultInjected(spec=spec, target=target, at=at))

    def recovery(self, at: float, node: str, slice_id: SliceId = SliceId("counts", 0)) -> None:  # noqa: B008
        lost = self.add(at, NodeLost(node=node, reason="silent"))
        assigned = self.add(at + 0.1, Assigned(slice=slice_id, node="node-9", generation=2, reason="moved"), lost)
        steps = Steps(read_checkpoint=0.5, deploy=1.0, replay=0.4, replayed=3, done_at=at + 2)
        self.add(at + 2, Recovered(slice=slice_id, generation=2, **steps.model_dump()), assigned)

    def report(self) -> list[tuple[str, float | None, int]]:
        reports = fault_reports(Chronicle(self.events), 100.0)
        return [(r.spec, r.detected_after_s, len(r.recoveries)) for r in reports]


def test_a_killed_node_is_followed_to_its_recovery() -> None:
    story = Story()
    story.add(100.0, ManagerStarted(phase=Phase.RUNNING))
    story.fault(105.0, "kill:node-2@5s")
    story.recovery(105.5, "node-2")
    (report,) = fault_reports(Chronicle(story.events), 100.0)
    assert (report.at_s, report.detected_after_s) == (5.0, 0.5)
    (recovery,) = report.recoveries
    assert (recovery.slice, recovery.scheme, recovery.actual_s) == ("counts[0]", "passive_replication", 2.5)
    taken = {name: seconds for name, seconds in recovery.steps.items() if seconds}
    assert taken == {"detect": 0.5, "read_checkpoint": 0.5, "deploy": 1.0, "replay": 0.4}
    assert recovery.epochs_replayed == 3


def test_each_fault_has_its_own_recoveries() -> None:
    story = Story()
    story.recovery(102.0, "node-1", SliceId("words", 0))
    story.fault(105.0, "kill:node-2@5s")
    story.recovery(105.5, "node-2")
    story.fault(110.0, "kill:node-1@10s")
    story.recovery(110.4, "node-1")
    assert story.report() == [("kill:node-2@5s", 0.5, 1), ("kill:node-1@10s", 0.4, 1)]


def test_a_freeze_nobody_noticed_does_not_take_the_next_fault_for_its_own() -> None:
    story = Story()
    story.fault(105.0, "freeze:node-1@5s+0.1s")
    story.fault(120.0, "kill:node-1@20s")
    story.recovery(120.5, "node-1")
    assert story.report() == [("freeze:node-1@5s+0.1s", None, 0), ("kill:node-1@20s", 0.5, 1)]


def test_a_killed_manager_is_noticed_by_its_restart() -> None:
    story = Story()
    story.add(100.0, ManagerStarted(phase=Phase.RUNNING))
    for at, back in ((105.0, 106.5), (110.0, 111.0)):
        story.add(back, ManagerStarted(phase=Phase.RUNNING))
        story.fault(at, f"kill:manager@{at - 100:g}s")
    assert story.report() == [("kill:manager@5s", 1.5, 0), ("kill:manager@10s", 1.0, 0)]


def test_slices_count_the_work_of_all_their_replicas_and_the_state_of_the_newest() -> None:
    replicas = [
        ReplicaStatus(
            slice=SliceId("a", 0), generation=2, epoch=4, rows_in=5, rows_out=1, state_rows=7, state_bytes=70
        ),
        ReplicaStatus(
            slice=SliceId("a", 0), generation=1, epoch=9, rows_in=10, rows_out=2, state_rows=8, state_bytes=80
        ),
    ]
    reports = slice_reports(
        [Assignment(SliceId("b", 0), "node-2", 1), Assignment(SliceId("a", 0), "node-1", 2)],
        replicas,
        {"a[0]": {"deployed": 2.0}},
    )
    assert list(reports) == ["a[0]", "b[0]"]
    a = reports["a[0]"]
    assert (a.primary, a.epoch, a.rows_in, a.rows_out, a.state_rows, a.state_bytes) == ("node-1", 9, 15, 3, 7, 70)
    assert (reports["b[0]"].epoch, reports["b[0]"].rows_in) == (-1, 0)


# -- domains


def domain_lost(story: Story, at: float) -> int:
    return story.add(at, DomainLost(domain="domain-1", nodes=("node-1", "node-3"), reason="gone"))


def came_back(story: Story, at: float, slice_id: SliceId, cause: int) -> None:
    assigned = story.add(at, Assigned(slice=slice_id, node="node-9", generation=2, reason="moved"), cause)
    story.add(at + 1, Recovered(slice=slice_id, generation=2, done_at=at + 1), assigned)


@pytest.mark.parametrize("spec", ["kill:domain-1@5s", "kill:node-3@5s"])
def test_a_lost_domain_is_one_failure_with_all_its_recoveries(spec: str) -> None:
    story = Story()
    story.fault(105.0, spec)
    lost = domain_lost(story, 105.5)
    for number in range(3):
        came_back(story, 106.0 + number, SliceId("counts", number), lost)
    assert story.report() == [(spec, 0.5, 3)]
    assert [one.cause for one in past_recoveries(story.events)] == [spec] * 3


def test_a_killed_domain_may_be_noticed_node_by_node() -> None:
    story = Story()
    story.fault(105.0, "kill:domain-1@5s")
    for number, node in enumerate(("node-1", "node-3")):
        lost = story.add(105.4 + number / 10, NodeLost(node=node, domain="domain-1", reason="silent"))
        came_back(story, 106.0, SliceId("counts", number), lost)
    story.fault(120.0, "kill:node-5@20s")
    later = story.add(120.5, NodeLost(node="node-5", domain="domain-1", reason="silent"))
    came_back(story, 121.0, SliceId("words", 0), later)
    assert story.report() == [("kill:domain-1@5s", 0.4, 2), ("kill:node-5@20s", 0.5, 1)]
