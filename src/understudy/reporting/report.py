"""The report of a run, computed from what the manager remembered. Documented in docs/report.md."""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field

from understudy.model.event import COUNT, PLACED, Event
from understudy.model.faults import MANAGER
from understudy.model.layout import Layout, Vertex
from understudy.model.messages import STEPS, Failure, Receipt, ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee, Scheme
from understudy.model.run import Frozen
from understudy.model.snapshot import Assignment, Phase
from understudy.model.spans import Span, members, union
from understudy.model.tally import Tally, median, take
from understudy.reporting.chronicle import Chronicle
from understudy.reporting.promises import missed

Verdict = Literal["exact", "at least once", "diverged", "lossy", "failed"]
Delivery = Literal["once", "at least once"]
TOLD_BY: Mapping[str, frozenset[str]] = {
    "decision": frozenset({"decision"}),
    "switched": frozenset({"switched", "protection"}),
    "fault": frozenset({"fault", "manager", "node_lost", *PLACED, "recovered", "protection", "switched"}),
}
"""What is told of decisions, transitions and faults: by which kinds of events."""


class SliceReport(Frozen):
    """`gaps` were published empty because a failure lost them, `forgotten` are not in the state any more; of
    those, which may be all before a failure, only the first and last of each run are named."""

    primary: str
    secondary: str | None
    scheme: str
    scheme_time_s: dict[str, float]
    gaps: tuple[int, ...]
    forgotten: tuple[Span, ...]
    differed: int
    epoch: int
    rows_in: int
    rows_out: int
    state_rows: int
    state_bytes: int


class RecoveryReport(Frozen):
    """`steps` are seconds; `actual_s` runs from the fault to the first epoch nobody had finished before. `idle_s` of it
    there was no new input yet, so what counts against an objective is `away_s`, the rest."""

    slice: str
    scheme: str
    steps: dict[str, float]
    actual_s: float
    idle_s: float
    away_s: float
    epochs_replayed: int
    predicted_s: dict[str, float] | None = None
    objective_s: float | None = None
    missed: str | None = None
    """Why the objective was not kept, if there was one and it was not."""


class TransitionReport(Frozen):
    """A switch that was asked for; `seconds` until the scheme was reached, None if it never was."""

    slice: str
    before: str
    scheme: str
    at_s: float
    seconds: float | None


class FaultReport(Frozen):
    spec: str
    at_s: float
    detected_after_s: float | None
    recoveries: tuple[RecoveryReport, ...]


class ReactionReport(Frozen):
    """Secondaries that were woken because a node was silent or slow. `stood_in` made something new, `false_alarms` did
    not; `promoted` ones stayed. `read_back` epochs were taken over as state by primaries that had missed them. The
    rest is what it cost that secondaries were standing in."""

    woken: int = 0
    stood_in: int = 0
    rolled_back: int = 0
    false_alarms: int = 0
    promoted: int = 0
    read_back: int = 0
    stood_in_s: float = 0.0
    cpu_s: float = 0.0
    bytes: int = 0


class DecisionReport(Frozen):
    """What the controller chose, in a sentence and in figures."""

    at_s: float
    sentence: str
    figures: dict[str, Any]


class SinkReport(Frozen):
    epochs: int
    rows: int
    lost_epochs: int
    duplicate_epochs: int
    delivered: Delivery = "once"
    gaps: tuple[int, ...]
    digest: str
    max_gap_s: float
    max_late_s: float


class SchemeCosts(Frozen):
    """What secondaries cost while their slices were protected by one scheme.

    `node_s` is the time their nodes were held for them: a node with four replicas counts a quarter for each. What the
    primaries used in the same time is there to compare with.
    """

    seconds: float = 0.0
    cpu_s: float = 0.0
    primary_cpu_s: float = 0.0
    memory_bytes: int = 0
    node_s: float = 0.0
    bytes_received: int = 0
    bytes_pulled: int = 0
    bytes_shipped: int = 0
    bytes_published: int = 0

    def rounded(self) -> SchemeCosts:
        return SchemeCosts(**{name: round(value, 3) for name, value in self})


class CostReport(Frozen):
    cpu_s: dict[str, float]
    peak_memory_bytes: dict[str, int]
    bytes_received: int
    bytes_pulled: int
    bytes_published: int
    bytes_shipped: int
    schemes: dict[str, SchemeCosts] = Field(default_factory=dict)


class Report(Frozen):
    app: str
    run: str
    epoch_s: float
    epochs: int
    elapsed_s: float
    nodes: tuple[str, ...]
    slices: dict[str, SliceReport]
    faults: tuple[FaultReport, ...]
    transitions: tuple[TransitionReport, ...]
    decisions: tuple[DecisionReport, ...]
    reactions: ReactionReport = ReactionReport()
    sinks: dict[str, SinkReport]
    costs: CostReport
    diverged: tuple[str, ...]
    failure: Failure | None
    verdict: Verdict
    told_since_s: float = 0.0
    """Faults, transitions and decisions are told from here on; what happened earlier is in the totals alone."""


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
    phase: Phase, sinks: Mapping[str, SinkReport], slices: Mapping[str, SliceReport], tainted: Collection[str] = ()
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


def tainted(diverged: Iterable[str], layout: Layout) -> list[str]:
    """Slices whose divergence may show in the output.

    One that keeps no state, and of which a replay may differ, is not among them: what it published first is all that
    anybody saw.
    """

    def harmless(vertex: Vertex) -> bool:
        expected = not vertex.deterministic or vertex.recovery.guarantee == Guarantee.ROLLBACK
        return expected and not vertex.stateful

    return [name for name in diverged if not harmless(layout[SliceId.parse(name).operator])]


def reaction_report(totals: Mapping[str, Mapping[str, float]], read_back: int) -> ReactionReport:
    """From the totals of the events, by kind and field; see `model/event.py`."""

    def total(kind: str, *fields: str) -> float:
        return sum(totals.get(kind, {}).get(field, 0.0) for field in fields)

    return ReactionReport(
        woken=int(total("woken", COUNT)),
        stood_in=int(total("stood_in", COUNT)),
        rolled_back=int(total("rolled_back", COUNT)),
        false_alarms=int(total("rolled_back", "false_alarm")),
        promoted=int(total("promoted", "standing_in")),
        read_back=read_back,
        stood_in_s=round(total("rolled_back", "stood_in_s"), 3),
        cpu_s=round(total("rolled_back", "cpu_s"), 3),
        bytes=int(total("rolled_back", "bytes_received", "bytes_published", "bytes_shipped")),
    )


def told_kinds(totals: Mapping[str, object]) -> set[str]:
    """The kinds of events that the report has to read, given the kinds there were."""
    return {kind for told, kinds in TOLD_BY.items() if told in totals for kind in kinds}


def decision_reports(story: Chronicle, began_at: float) -> tuple[DecisionReport, ...]:
    return tuple(
        DecisionReport(at_s=round(e.at - began_at, 3), sentence=e.text, figures=e.fields) for e in story.of("decision")
    )


def transition_reports(story: Chronicle, began_at: float) -> tuple[TransitionReport, ...]:
    """Every switch that was asked for, and when its scheme was reached."""
    return tuple(_transition(event, story, began_at) for event in story.of("switched"))


def _transition(asked: Event, story: Chronicle, began_at: float) -> TransitionReport:
    name, scheme = asked.fields["slice"], asked.fields["scheme"]
    again = next((e.number for e in story.line("switched", name).after(asked.number)), math.inf)
    later = takewhile(lambda e: e.number < again, story.line("protection", name).after(asked.number))
    reached = next((e for e in later if _reaches(e, scheme)), None)
    return TransitionReport(
        slice=name,
        before=asked.fields["before"],
        scheme=scheme,
        at_s=round(asked.at - began_at, 3),
        seconds=reached.fields["seconds"] if reached else None,
    )


def _reaches(event: Event, scheme: str) -> bool:
    return event.fields["scheme"] == scheme and event.fields["seconds"] is not None


def fault_reports(
    story: Chronicle, began_at: float, objectives: Mapping[str, float] = MappingProxyType({})
) -> tuple[FaultReport, ...]:
    """Follows every injected fault to its detection and the recoveries it caused; objectives are by operator."""
    times: dict[str, list[float]] = {}
    for fault in story.of("fault"):
        insort(times.setdefault(fault.fields["target"], []), float(fault.fields["at"]))
    return tuple(_fault(event, story, times, began_at, objectives) for event in story.of("fault"))


def _fault(
    fault: Event,
    story: Chronicle,
    times: Mapping[str, Sequence[float]],
    began_at: float,
    objectives: Mapping[str, float],
) -> FaultReport:
    at, target = float(fault.fields["at"]), fault.fields["target"]
    # What was noticed only after the next fault of the same target is that one's.
    later = times[target][bisect_right(times[target], at) :][:1]
    lost = _noticed(story, target, at, later[0] if later else math.inf)
    caused = [e for e in story.caused_by(lost.number) if e.kind in PLACED] if lost is not None else []
    recoveries = [e for cause in caused for e in story.caused_by(cause.number) if e.kind == "recovered"]
    return FaultReport(
        spec=fault.fields["spec"],
        at_s=round(at - began_at, 3),
        detected_after_s=round(lost.at - at, 3) if lost else None,
        recoveries=tuple(
            _recovery(e, at, lost.at if lost else at, story, objectives)
            for e in sorted(recoveries, key=lambda e: e.number)
        ),
    )


def _noticed(story: Chronicle, target: str, since: float, until: float) -> Event | None:
    """How a fault was noticed: a node given up, or a manager started again."""
    if target == MANAGER:
        return story.first_between("manager", None, since, until)
    return story.first_between("node_lost", target, since, until)


def _recovery(
    event: Event, at: float, detected_at: float, story: Chronicle, objectives: Mapping[str, float]
) -> RecoveryReport:
    fields = event.fields
    name = fields["slice"]
    # A secondary that was standing in already may have done what was due before the fault.
    actual = max(0.0, fields["done_at"] - at)
    idle = actual if fields.get("seamless") else min(actual, fields["idle"])
    steps = {name: round(fields[name], 3) for name in STEPS}
    # Whoever was woken at the first sign was at work before the node was given up.
    detect = max(0.0, min(detected_at - at, actual - sum(steps.values())))
    steps = {"detect": round(detect, 3)} | steps
    objective = objectives.get(SliceId.parse(name).operator)
    # The scheme that protected the slice, and the one that should have; with an objective it begins on the safe side.
    scheme = _scheme("protection", name, at, story) or Scheme.PASSIVE_REPLICATION
    first = Scheme.PASSIVE_REPLICATION if objective is None else Scheme.ACTIVE_REPLICATION
    wanted = _scheme("switched", name, at, story) or first
    return RecoveryReport(
        slice=name,
        scheme=scheme,
        steps=steps,
        actual_s=round(actual, 3),
        idle_s=round(idle, 3),
        away_s=round(actual - idle, 3),
        epochs_replayed=fields["replayed"],
        predicted_s=fields.get("predicted"),
        objective_s=objective,
        missed=missed(objective, round(actual - idle, 3), wanted, scheme, steps, fields.get("predicted")),
    )


def _scheme(kind: str, name: str, at: float, story: Chronicle) -> Scheme | None:
    """The scheme that the last event of a kind named before a moment."""
    last = story.line(kind, name).last_by(at)
    return Scheme(last.fields["scheme"]) if last else None


def slice_reports(
    assignments: Sequence[Assignment], replicas: Sequence[ReplicaStatus], times: Mapping[str, Mapping[str, float]]
) -> dict[str, SliceReport]:
    """Rows count the work done by all replicas of a slice, so replayed rows count again; state is the primary's."""
    reports: dict[str, SliceReport] = {}
    for assignment in sorted(assignments, key=lambda a: a.slice):
        name = str(assignment.slice)
        own = sorted((r for r in replicas if r.slice == assignment.slice), key=lambda r: r.generation)
        leaders = [r for r in own if r.primary]
        newest = leaders[-1] if leaders else ReplicaStatus(slice=assignment.slice, generation=0)
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
