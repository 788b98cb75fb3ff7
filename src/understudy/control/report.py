"""The report of a run, computed from what the manager remembered. Documented in docs/report.md."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

from understudy.model import hashing
from understudy.model.event import Event
from understudy.model.faults import MANAGER
from understudy.model.messages import Failure, Receipt, ReplicaStatus
from understudy.model.run import Frozen
from understudy.model.snapshot import Phase

Verdict = Literal["exact", "lossy", "failed"]


class SliceReport(Frozen):
    primary: str
    epoch: int
    rows_in: int
    rows_out: int
    state_rows: int
    state_bytes: int


class RecoveryReport(Frozen):
    """`steps` are seconds; `actual_s` runs from the fault to the first epoch nobody had finished before."""

    slice: str
    scheme: str
    steps: dict[str, float]
    actual_s: float
    epochs_replayed: int


class FaultReport(Frozen):
    spec: str
    at_s: float
    detected_after_s: float | None
    recoveries: tuple[RecoveryReport, ...]


class SinkReport(Frozen):
    epochs: int
    rows: int
    lost_epochs: int
    duplicate_epochs: int
    digest: str
    max_gap_s: float


class CostReport(Frozen):
    cpu_s: dict[str, float]
    peak_memory_bytes: dict[str, int]
    bytes_published: int
    bytes_shipped: int


class Report(Frozen):
    app: str
    run: str
    epoch_s: float
    epochs: int
    elapsed_s: float
    nodes: tuple[str, ...]
    slices: dict[str, SliceReport]
    faults: tuple[FaultReport, ...]
    sinks: dict[str, SinkReport]
    costs: CostReport
    diverged: tuple[str, ...]
    failure: Failure | None
    verdict: Verdict


def sink_report(receipts: Sequence[Receipt], duplicates: int, goal: int | None) -> SinkReport:
    """The digest covers all rows in epoch order; empty epochs and gaps show as well."""
    ordered = sorted(receipts, key=lambda receipt: receipt.epoch)
    expected = goal if goal is not None else max((r.epoch + 1 for r in ordered), default=0)
    gaps = [later.at - earlier.at for earlier, later in pairwise(ordered)]
    return SinkReport(
        epochs=len(ordered),
        rows=sum(receipt.rows for receipt in ordered),
        # A run resumed with a smaller goal may have delivered more.
        lost_epochs=expected - sum(receipt.epoch < expected for receipt in ordered),
        duplicate_epochs=duplicates,
        digest=hashing.combine((r.epoch, r.digest, r.rows) for r in ordered),
        max_gap_s=round(max(gaps, default=0.0), 3),
    )


def verdict(phase: Phase, sinks: Mapping[str, SinkReport]) -> Verdict:
    if phase is Phase.FAILED:
        return "failed"
    clean = all(sink.lost_epochs == 0 and sink.duplicate_epochs == 0 for sink in sinks.values())
    return "exact" if clean else "lossy"


def fault_reports(events: Sequence[Event], began_at: float, schemes: Mapping[str, str]) -> tuple[FaultReport, ...]:
    """Follows every injected fault to its detection and the recoveries it caused."""
    return tuple(_fault(event, events, began_at, schemes) for event in events if event.kind == "fault")


def _fault(fault: Event, events: Sequence[Event], began_at: float, schemes: Mapping[str, str]) -> FaultReport:
    at, target = float(fault.fields["at"]), fault.fields["target"]
    others = [e.fields["at"] for e in events if e.kind == "fault" and e.fields["target"] == target]
    # What was noticed only after the next fault of the same target is that one's.
    until = min((other for other in others if other > at), default=math.inf)
    lost = next((e for e in events if at <= e.at < until and _answers(e, target)), None)
    caused = {e.number for e in events if lost is not None and e.kind == "assigned" and e.cause == lost.number}
    recoveries = [e for e in events if e.kind == "recovered" and e.cause in caused]
    return FaultReport(
        spec=fault.fields["spec"],
        at_s=round(at - began_at, 3),
        detected_after_s=round(lost.at - at, 3) if lost else None,
        recoveries=tuple(_recovery(e, at, lost.at if lost else at, schemes) for e in recoveries),
    )


def _answers(event: Event, target: str) -> bool:
    """Whether this is how the fault was noticed: a node given up, or a manager started again."""
    return (
        event.kind == "manager" if target == MANAGER else event.kind == "node_lost" and event.fields["node"] == target
    )


def _recovery(event: Event, at: float, detected_at: float, schemes: Mapping[str, str]) -> RecoveryReport:
    fields = event.fields
    names = ("read_checkpoint", "deploy", "wire", "replay")
    return RecoveryReport(
        slice=fields["slice"],
        scheme=schemes.get(fields["slice"].partition("[")[0], "passive_replication"),
        steps={"detect": round(detected_at - at, 3)} | {name: round(fields[name], 3) for name in names},
        actual_s=round(fields["done_at"] - at, 3),
        epochs_replayed=fields["replayed"],
    )


def slice_reports(hosts: Mapping[str, str], replicas: Sequence[ReplicaStatus]) -> dict[str, SliceReport]:
    """Rows count the work done by all replicas of a slice, so replayed rows count again; state is the newest's."""
    reports: dict[str, SliceReport] = {}
    for name, host in sorted(hosts.items()):
        own = sorted((r for r in replicas if r.slice == name), key=lambda r: r.generation)
        newest = own[-1] if own else ReplicaStatus(slice=name, generation=0)
        reports[name] = SliceReport(
            primary=host,
            epoch=max((r.epoch for r in own), default=-1),
            rows_in=sum(r.rows_in for r in own),
            rows_out=sum(r.rows_out for r in own),
            state_rows=newest.state_rows,
            state_bytes=newest.state_bytes,
        )
    return reports
