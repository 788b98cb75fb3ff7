"""The report of a run, computed from what the manager remembered. Documented in docs/report.md."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field

from understudy.control.promises import missed
from understudy.model import hashing
from understudy.model.event import Event
from understudy.model.faults import MANAGER
from understudy.model.layout import Layout, Vertex
from understudy.model.messages import STEPS, Failure, Receipt, ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee, Scheme
from understudy.model.run import Frozen, Rhythm
from understudy.model.snapshot import Assignment, Phase
from understudy.model.spans import Span, members, union

Verdict = Literal["exact", "at least once", "diverged", "lossy", "failed"]
Delivery = Literal["once", "at least once"]


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
    rest is what it cost that secondaries were awake."""

    woken: int = 0
    stood_in: int = 0
    rolled_back: int = 0
    false_alarms: int = 0
    promoted: int = 0
    read_back: int = 0
    awake_s: float = 0.0
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


def sink_report(
    receipts: Sequence[Receipt], duplicates: int, goal: int | None, rhythm: Rhythm | None = None
) -> SinkReport:
    """The digest covers all rows in epoch order; empty epochs and gaps show as well.

    An epoch that came with a gap in it counts as lost, because some of its rows are. Lateness is against the rhythm: by
    how much the worst epoch came later than the one that was usual, the median.
    """
    ordered = sorted(receipts, key=lambda receipt: receipt.epoch)
    expected = goal if goal is not None else max((r.epoch + 1 for r in ordered), default=0)
    holes = tuple(receipt.epoch for receipt in ordered if receipt.lost)
    gaps = [later.at - earlier.at for earlier, later in pairwise(ordered)]
    return SinkReport(
        epochs=len(ordered),
        rows=sum(receipt.rows for receipt in ordered),
        # A run resumed with a smaller goal may have delivered more.
        lost_epochs=expected - sum(receipt.epoch < expected and not receipt.lost for receipt in ordered),
        gaps=holes,
        duplicate_epochs=duplicates,
        delivered="at least once" if duplicates else "once",
        digest=hashing.combine((r.epoch, r.digest, r.rows) for r in ordered),
        max_gap_s=round(max(gaps, default=0.0), 3),
        max_late_s=round(_lateness(ordered, rhythm), 3),
    )


def _lateness(receipts: Sequence[Receipt], rhythm: Rhythm | None) -> float:
    if rhythm is None or rhythm.fast:
        return 0.0
    delays = [r.at - rhythm.due(r.epoch) for r in receipts if r.epoch >= rhythm.epoch]
    return max(delays) - statistics.median(delays) if delays else 0.0


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


def decision_reports(events: Sequence[Event], began_at: float) -> tuple[DecisionReport, ...]:
    return tuple(
        DecisionReport(at_s=round(e.at - began_at, 3), sentence=e.text, figures=e.fields)
        for e in events
        if e.kind == "decision"
    )


def reaction_report(events: Sequence[Event], replicas: Sequence[ReplicaStatus]) -> ReactionReport:
    def of(kind: str) -> list[Event]:
        return [event for event in events if event.kind == kind]

    back = of("rolled_back")

    def spent(*names: str) -> float:
        return float(sum(event.fields.get(name, 0) for event in back for name in names))

    return ReactionReport(
        woken=len(of("woken")),
        stood_in=len(of("stood_in")),
        rolled_back=len(back),
        false_alarms=sum(bool(event.fields.get("false_alarm")) for event in back),
        promoted=sum(bool(event.fields.get("awake")) for event in of("promoted")),
        read_back=sum(replica.read_back for replica in replicas),
        awake_s=round(spent("awake_s"), 3),
        cpu_s=round(spent("cpu_s"), 3),
        bytes=int(spent("bytes_received", "bytes_published", "bytes_shipped")),
    )


def transition_reports(events: Sequence[Event], began_at: float) -> tuple[TransitionReport, ...]:
    """Every switch that was asked for, and when its scheme was reached."""
    return tuple(_transition(event, events, began_at) for event in events if event.kind == "switched")


def _transition(asked: Event, events: Sequence[Event], began_at: float) -> TransitionReport:
    name, scheme = asked.fields["slice"], asked.fields["scheme"]
    later = [e for e in events if e.number > asked.number and e.fields.get("slice") == name]
    again = next((e.number for e in later if e.kind == "switched"), math.inf)
    reached = next((e for e in later if e.kind == "protection" and e.number < again and _reaches(e, scheme)), None)
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
    events: Sequence[Event], began_at: float, objectives: Mapping[str, float] = MappingProxyType({})
) -> tuple[FaultReport, ...]:
    """Follows every injected fault to its detection and the recoveries it caused; objectives are by operator."""
    return tuple(_fault(event, events, began_at, objectives) for event in events if event.kind == "fault")


def _fault(fault: Event, events: Sequence[Event], began_at: float, objectives: Mapping[str, float]) -> FaultReport:
    at, target = float(fault.fields["at"]), fault.fields["target"]
    others = [e.fields["at"] for e in events if e.kind == "fault" and e.fields["target"] == target]
    # What was noticed only after the next fault of the same target is that one's.
    until = min((other for other in others if other > at), default=math.inf)
    lost = next((e for e in events if at <= e.at < until and _answers(e, target)), None)
    kinds = ("assigned", "promoted")
    caused = {e.number for e in events if lost is not None and e.kind in kinds and e.cause == lost.number}
    recoveries = [e for e in events if e.kind == "recovered" and e.cause in caused]
    return FaultReport(
        spec=fault.fields["spec"],
        at_s=round(at - began_at, 3),
        detected_after_s=round(lost.at - at, 3) if lost else None,
        recoveries=tuple(_recovery(e, at, lost.at if lost else at, events, objectives) for e in recoveries),
    )


def _answers(event: Event, target: str) -> bool:
    """Whether this is how the fault was noticed: a node given up, or a manager started again."""
    return (
        event.kind == "manager" if target == MANAGER else event.kind == "node_lost" and event.fields["node"] == target
    )


def _recovery(
    event: Event, at: float, detected_at: float, events: Sequence[Event], objectives: Mapping[str, float]
) -> RecoveryReport:
    fields = event.fields
    name = fields["slice"]
    # A secondary that was awake already may have done what was due before the fault.
    actual = max(0.0, fields["done_at"] - at)
    idle = actual if fields.get("seamless") else min(actual, fields["idle"])
    steps = {name: round(fields[name], 3) for name in STEPS}
    # Whoever was woken at the first sign was at work before the node was given up.
    detect = max(0.0, min(detected_at - at, actual - sum(steps.values())))
    steps = {"detect": round(detect, 3)} | steps
    objective, scheme = objectives.get(SliceId.parse(name).operator), _protected_by(name, at, events)
    wanted = _wanted(name, at, events, objective)
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


def _protected_by(name: str, at: float, events: Sequence[Event]) -> Scheme:
    """The scheme that protected a slice at a moment."""
    return _last_scheme("protection", name, at, events) or Scheme.PASSIVE_REPLICATION


def _wanted(name: str, at: float, events: Sequence[Event], objective: float | None) -> Scheme:
    """The scheme that should have; with an objective a slice begins on the safe side."""
    first = Scheme.PASSIVE_REPLICATION if objective is None else Scheme.ACTIVE_REPLICATION
    return _last_scheme("switched", name, at, events) or first


def _last_scheme(kind: str, name: str, at: float, events: Sequence[Event]) -> Scheme | None:
    known = [e for e in events if e.kind == kind and e.fields["slice"] == name and e.at <= at]
    return Scheme(known[-1].fields["scheme"]) if known else None


def slice_reports(
    assignments: Sequence[Assignment], replicas: Sequence[ReplicaStatus], times: Mapping[str, Mapping[str, float]]
) -> dict[str, SliceReport]:
    """Rows count the work done by all replicas of a slice, so replayed rows count again; state is the primary's."""
    reports: dict[str, SliceReport] = {}
    for assignment in sorted(assignments, key=lambda a: a.slice):
        name = str(assignment.slice)
        own = sorted((r for r in replicas if r.slice == name), key=lambda r: r.generation)
        leaders = [r for r in own if r.lead]
        newest = leaders[-1] if leaders else ReplicaStatus(slice=name, generation=0)
        reports[name] = SliceReport(
            primary=assignment.node,
            secondary=assignment.standby.node if assignment.standby else None,
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
