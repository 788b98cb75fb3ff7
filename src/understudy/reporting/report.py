"""Computes the report of a run from events, counters and receipts."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from types import MappingProxyType

from understudy.model.events import (
    COUNT,
    BranchChanged,
    ControllerDecided,
    Event,
    FaultInjected,
    Happening,
    ManagerStarted,
    Moved,
    PlanAdopted,
    Promoted,
    Protected,
    Recovered,
    RolledBack,
    StandingIn,
    StoodIn,
    Switched,
)
from understudy.model.faults import MANAGER
from understudy.model.layout import Layout, Vertex
from understudy.model.messages import STEPS, Failure, Receipt, ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee, Scheme
from understudy.model.report import (
    CostReport,
    DecisionReport,
    FaultReport,
    MoveReport,
    PlanReport,
    ReactionReport,
    RecoveryReport,
    Report,
    SchemeCosts,
    SinkReport,
    SliceReport,
    TransitionReport,
    Verdict,
)
from understudy.model.run import RunSpec
from understudy.model.snapshot import Assignment, Phase
from understudy.model.spans import members, union
from understudy.model.tally import Tally, median, take
from understudy.model.topology import Topology
from understudy.reporting.chronicle import Chronicle, Told
from understudy.reporting.losses import Loss, Losses
from understudy.reporting.promises import missed
from understudy.reporting.recoveries import KINDS, Recovery, recoveries
from understudy.reporting.tentative import KINDS as TENTATIVE
from understudy.reporting.tentative import tentative_report

TOLD_BY: Mapping[str, frozenset[str]] = {
    ControllerDecided.kind: frozenset({ControllerDecided.kind}),
    PlanAdopted.kind: frozenset({PlanAdopted.kind}),
    Switched.kind: frozenset({Switched.kind, Protected.kind}),
    Moved.kind: frozenset({Moved.kind, Recovered.kind}),
    FaultInjected.kind: KINDS,
    BranchChanged.kind: TENTATIVE,
}
"""What is told of decisions, plans, transitions, moves and faults: by which kinds of events."""


@dataclass(frozen=True)
class ReportInput:
    """All that a report is computed from. Times are times of day; `told_since` is that of the first event read."""

    run: RunSpec
    topology: Topology
    layout: Layout | None
    phase: Phase
    failure: Failure | None
    began_at: float
    ended_at: float
    told_since: float
    assignments: tuple[Assignment, ...]
    diverged: Collection[SliceId]
    replicas: tuple[ReplicaStatus, ...]
    cpu_s: Mapping[str, float]
    peak_memory_bytes: Mapping[str, int]
    scheme_times: Mapping[str, Mapping[str, float]]
    scheme_costs: Mapping[Scheme, SchemeCosts]
    totals: Mapping[str, Mapping[str, float]]
    events: Sequence[Event]
    sinks: dict[str, SinkReport]


def make_report(given: ReportInput) -> Report:
    """How the run went so far."""
    story, replicas, began = Chronicle(given.events), given.replicas, given.began_at
    slices = slice_reports(given.assignments, replicas, given.scheme_times)
    return Report(
        app=given.topology.name,
        run=given.run.id,
        epoch_s=given.topology.epoch_s,
        epochs=min((sink.epochs for sink in given.sinks.values()), default=0),
        elapsed_s=round(given.ended_at - began, 3),
        nodes=tuple(sorted(given.cpu_s)),
        slices=slices,
        faults=fault_reports(story, began, _objectives(given.layout)),
        transitions=transition_reports(story, began),
        plans=plan_reports(story, began),
        decisions=decision_reports(story, began),
        moves=move_reports(story, began),
        reactions=reaction_report(given.totals, sum(replica.read_back for replica in replicas)),
        tentative=tentative_report(story, began),
        sinks=given.sinks,
        costs=CostReport(
            cpu_s={name: round(seconds, 2) for name, seconds in given.cpu_s.items()},
            peak_memory_bytes=dict(given.peak_memory_bytes),
            bytes_received=sum(replica.bytes_received for replica in replicas),
            bytes_pulled=sum(replica.bytes_pulled for replica in replicas),
            bytes_published=sum(replica.bytes_published for replica in replicas),
            bytes_shipped=sum(replica.bytes_shipped for replica in replicas),
            schemes={name: cost.rounded() for name, cost in given.scheme_costs.items()},
        ),
        diverged=tuple(sorted(str(slice_id) for slice_id in given.diverged)),
        failure=given.failure,
        verdict=verdict(given.phase, given.sinks, slices, tainted(given.diverged, given.layout)),
        told_since_s=round(max(0.0, given.told_since - began), 3),
    )


def _objectives(layout: Layout | None) -> dict[str, float]:
    vertices = layout.vertices if layout is not None else ()
    return {v.name: v.recovery.objective_s for v in vertices if v.recovery.objective_s is not None}


def sink_report(
    tally: Tally,
    delays: Mapping[int, int] = MappingProxyType({}),
    holes: Sequence[int] = (),
    beyond: Sequence[Receipt] = (),
    duplicates: int = 0,
    goal: int | None = None,
) -> SinkReport:
    """What a sink has delivered: the epochs in its tally, and those `beyond` it that came before an earlier one.

    The digest covers all rows in epoch order; empty epochs and gaps show as well. `holes` are epochs that came with a
    gap in them: they count as lost, because some of their rows are. Lateness is against the rhythm: by how much the
    worst epoch came later than the one that was usual, the median.
    """
    whole = take(tally, sorted(beyond, key=lambda receipt: receipt.epoch)).tally
    newest = max((receipt.epoch + 1 for receipt in beyond), default=tally.epochs)
    expected = goal if goal is not None else newest
    # A run resumed with a smaller goal may have delivered more.
    there = min(tally.epochs, expected) + sum(receipt.epoch < expected for receipt in beyond)
    usual = median(delays)
    late = 0.0 if usual is None or tally.delayed_at_most_s is None else max(0.0, tally.delayed_at_most_s - usual)
    return SinkReport(
        epochs=whole.epochs,
        rows=whole.rows,
        lost_epochs=expected - there + sum(epoch < expected for epoch in holes),
        gaps=tuple(holes),
        duplicate_epochs=duplicates,
        delivered="at least once" if duplicates else "once",
        digest=whole.digest,
        max_gap_s=round(whole.max_gap_s, 3),
        max_late_s=round(late, 3),
    )


def verdict(
    phase: Phase, sinks: Mapping[str, SinkReport], slices: Mapping[str, SliceReport], tainted: Collection[object] = ()
) -> Verdict:
    """`tainted` slices have diverged in a way that shows: the output may be that of no run without failures."""
    if phase is Phase.FAILED:
        return "failed"
    complete = all(sink.lost_epochs == 0 for sink in sinks.values())
    whole = not any(one.gaps or one.forgotten for one in slices.values())
    if not (complete and whole):
        return "lossy"
    if tainted:
        return "diverged"
    return "at least once" if any(sink.duplicate_epochs for sink in sinks.values()) else "exact"


def tainted(diverged: Iterable[SliceId], layout: Layout | None) -> list[SliceId]:
    """Slices whose divergence may show in the output.

    One that keeps no state, and of which a replay may differ, is not among them: what it published first is all that
    anybody saw.
    """

    def harmless(vertex: Vertex) -> bool:
        expected = not vertex.deterministic or vertex.recovery.guarantee == Guarantee.ROLLBACK
        return expected and not vertex.stateful

    return [one for one in diverged if layout is None or not harmless(layout[one.operator])]


def reaction_report(totals: Mapping[str, Mapping[str, float]], read_back: int) -> ReactionReport:
    """From the totals of the events, by kind and field; see `model/events.py`."""

    def total(record: type[Happening], *fields: str) -> float:
        return sum(totals.get(record.kind, {}).get(field, 0.0) for field in fields)

    return ReactionReport(
        standing_in=int(total(StandingIn, COUNT)),
        stood_in=int(total(StoodIn, COUNT)),
        rolled_back=int(total(RolledBack, COUNT)),
        false_alarms=int(total(RolledBack, "false_alarm")),
        promoted=int(total(Promoted, "standing_in")),
        read_back=read_back,
        stood_in_s=round(total(RolledBack, "stood_in_s"), 3),
        cpu_s=round(total(RolledBack, "cpu_s"), 3),
        bytes=int(total(RolledBack, "bytes_received", "bytes_published", "bytes_shipped")),
    )


def told_kinds(totals: Mapping[str, object]) -> set[str]:
    """The kinds of events that the report has to read, given the kinds there were."""
    return {kind for told, kinds in TOLD_BY.items() if told in totals for kind in kinds}


def decision_reports(story: Chronicle, began_at: float) -> tuple[DecisionReport, ...]:
    return tuple(
        DecisionReport(at_s=round(told.at - began_at, 3), sentence=told.text, figures=told.what.to_fields())
        for told in story.of(ControllerDecided)
    )


def plan_reports(story: Chronicle, began_at: float) -> tuple[PlanReport, ...]:
    return tuple(
        PlanReport(at_s=round(told.at - began_at, 3), sentence=told.text, **told.what.to_fields())
        for told in story.of(PlanAdopted)
    )


def move_reports(story: Chronicle, began_at: float) -> tuple[MoveReport, ...]:
    """Every slice that went to another node, and what was missing meanwhile."""
    back = {told.cause: told.what for told in story.of(Recovered)}
    return tuple(_move(told, back.get(told.number), began_at) for told in story.of(Moved))


def _move(told: Told[Moved], back: Recovered | None, began_at: float) -> MoveReport:
    what = told.what
    seamless = back is None or back.seamless
    steps = 0.0 if back is None or seamless else sum(float(getattr(back, name)) for name in STEPS) - back.idle
    return MoveReport(
        slice=str(what.slice),
        primary=what.primary,
        node=what.node,
        at_s=round(told.at - began_at, 3),
        seconds=what.seconds,
        away_s=round(max(0.0, steps), 3),
        replayed=0 if back is None else back.replayed,
        legacy=what.legacy,
    )


def transition_reports(story: Chronicle, began_at: float) -> tuple[TransitionReport, ...]:
    """Every switch that was asked for, and when its scheme was reached."""
    return tuple(_transition(told, story, began_at) for told in story.of(Switched))


def _transition(asked: Told[Switched], story: Chronicle, began_at: float) -> TransitionReport:
    name, scheme = str(asked.what.slice), asked.what.scheme
    again = next((told.number for told in story.line(Switched, name).after(asked.number)), math.inf)
    later = takewhile(lambda told: told.number < again, story.line(Protected, name).after(asked.number))
    reached = (told.what.seconds for told in later if told.what.scheme is scheme and told.what.seconds is not None)
    return TransitionReport(
        slice=name,
        before=asked.what.before,
        scheme=scheme,
        at_s=round(asked.at - began_at, 3),
        seconds=next(reached, None),
    )


def fault_reports(
    story: Chronicle, began_at: float, objectives: Mapping[str, float] = MappingProxyType({})
) -> tuple[FaultReport, ...]:
    """Every injected fault with its detection and the recoveries it caused; objectives are by operator."""
    caused: dict[int, list[Recovery]] = {}
    for recovery in recoveries(story):
        if recovery.lost is not None:
            caused.setdefault(recovery.lost.number, []).append(recovery)
    losses = Losses(story)
    return tuple(
        _fault(fault.what, _noticed(fault, story, losses), caused, began_at, objectives)
        for fault in story.of(FaultInjected)
    )


def _noticed(
    fault: Told[FaultInjected], story: Chronicle, losses: Losses
) -> Sequence[Told[ManagerStarted]] | Sequence[Loss]:
    """How a fault was noticed: nodes were given up, or a manager started again before its next fault."""
    if fault.what.target != MANAGER:
        return losses.noticed(fault)
    later = [told.what.at for told in story.of(FaultInjected) if told.what.target == MANAGER]
    until = min((at for at in later if at > fault.what.at), default=math.inf)
    started = story.first_between(ManagerStarted, None, fault.what.at, until)
    return () if started is None else (started,)


def _fault(
    fault: FaultInjected,
    noticed: Sequence[Told[ManagerStarted]] | Sequence[Loss],
    caused: Mapping[int, Sequence[Recovery]],
    began_at: float,
    objectives: Mapping[str, float],
) -> FaultReport:
    followed = [recovery for one in noticed for recovery in caused.get(one.number, ())]
    return FaultReport(
        spec=fault.spec,
        at_s=round(fault.at - began_at, 3),
        detected_after_s=round(noticed[0].at - fault.at, 3) if noticed else None,
        recoveries=tuple(recovery_report(one, objectives.get(one.slice.operator)) for one in followed),
    )


def recovery_report(recovery: Recovery, objective_s: float | None) -> RecoveryReport:
    """A recovery beside its objective. A slice with one begins with the strongest scheme."""
    first = Scheme.PASSIVE_REPLICATION if objective_s is None else Scheme.ACTIVE_REPLICATION
    scheme, wanted = recovery.protected_by or Scheme.PASSIVE_REPLICATION, recovery.wanted or first
    return RecoveryReport(
        slice=str(recovery.slice),
        scheme=scheme,
        steps=recovery.steps,
        actual_s=recovery.actual_s,
        idle_s=recovery.idle_s,
        away_s=recovery.away_s,
        epochs_replayed=recovery.replayed,
        predicted_s=recovery.predicted,
        objective_s=objective_s,
        missed=missed(objective_s, recovery.away_s, wanted, scheme, recovery.steps, recovery.predicted),
    )


def slice_reports(
    assignments: Sequence[Assignment], replicas: Sequence[ReplicaStatus], times: Mapping[str, Mapping[str, float]]
) -> dict[str, SliceReport]:
    """Rows count the work done by all replicas of a slice, so replayed rows count again; state is the primary's."""
    reports: dict[str, SliceReport] = {}
    for assignment in sorted(assignments, key=lambda a: a.slice):
        name = str(assignment.slice)
        own = sorted((r for r in replicas if r.slice == assignment.slice), key=lambda r: r.generation)
        primaries = [r for r in own if r.primary]
        newest = primaries[-1] if primaries else ReplicaStatus(slice=assignment.slice, generation=0)
        reports[name] = SliceReport(
            primary=assignment.node,
            secondary=assignment.secondary.node if assignment.secondary else None,
            scheme=assignment.scheme,
            scheme_time_s={scheme: round(seconds, 3) for scheme, seconds in times.get(name, {}).items()},
            gaps=tuple(members(union(gap for r in own for gap in r.gaps))),
            forgotten=union(forgotten for r in own for forgotten in r.forgotten),
            differed=sum(r.divergences for r in own),
            epoch=max((r.epoch for r in own), default=-1),
            rows_in=sum(r.rows_in for r in own),
            rows_out=sum(r.rows_out for r in own),
            state_rows=newest.state_rows,
            state_bytes=newest.state_bytes,
        )
    return reports
