"""From events to recoveries, the one computation behind the report, the page and the metrics.

A recovery is told by its `Recovered` event and by the chain of causes above it: the slice was placed because a node was
lost, and the node was lost because somebody killed it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from understudy.model.events import (
    Assigned,
    Event,
    FaultInjected,
    ManagerStarted,
    NodeLost,
    Promoted,
    Protected,
    Recovered,
    Switched,
)
from understudy.model.messages import STEPS
from understudy.model.names import SliceId
from understudy.model.page import PastRecovery
from understudy.model.recovery import Scheme
from understudy.reporting.chronicle import Chronicle, Line, Told

KINDS = frozenset(
    record.kind
    for record in (FaultInjected, ManagerStarted, NodeLost, Assigned, Promoted, Protected, Switched, Recovered)
)
"""The events recoveries are told by; the others may be forgotten."""


@dataclass(frozen=True)
class Recovery:
    """A slice that came back.

    - `fault` was injected, `lost` is the node that was given up; each is None if there was none.
    - `steps` are seconds, detection first if a node was lost.
    - `actual_s` runs from the fault, or from what was noticed of it, to the first epoch nobody had finished before. For
      `idle_s` of it there was no new input; `away_s` is the rest.
    - `protected_by` is the scheme that was in force, `wanted` the one last asked for; None if no event names one.
    """

    number: int
    at: float
    slice: SliceId
    cause: str
    fault: Told[FaultInjected] | None
    lost: Told[NodeLost] | None
    steps: dict[str, float]
    actual_s: float
    idle_s: float
    replayed: int
    predicted: dict[str, float] | None
    protected_by: Scheme | None
    wanted: Scheme | None

    @property
    def away_s(self) -> float:
        return round(self.actual_s - self.idle_s, 3)


def recoveries(story: Chronicle) -> tuple[Recovery, ...]:
    """One for every slice that came back, injected fault or not."""
    faults: dict[str, list[Told[FaultInjected]]] = {}
    for fault in sorted(story.of(FaultInjected), key=lambda told: told.what.at):
        faults.setdefault(fault.what.target, []).append(fault)
    return tuple(_recovery(told, story, faults) for told in story.of(Recovered))


def _recovery(told: Told[Recovered], story: Chronicle, faults: Mapping[str, Sequence[Told[FaultInjected]]]) -> Recovery:
    what = told.what
    causes = list(story.causes(told))
    lost = next((found for one in causes if (found := story.get_of(NodeLost, one.number)) is not None), None)
    # Without a lost node somebody moved the slice, or its replica failed: the last cause tells which.
    root = lost or (causes[-1] if causes else None)
    fault = _fault_behind(lost, faults) if lost else None
    since = fault.what.at if fault else root.at if root else None
    steps = {name: round(float(getattr(what, name)), 3) for name in STEPS}
    taken = sum(steps.values())
    # A secondary that was standing in may have done what was due before the fault.
    actual = taken if since is None else max(0.0, (what.done_at or told.at) - since)
    if lost is not None and since is not None:
        # A secondary that stands in is at work before the node is given up.
        steps = {"detect": round(max(0.0, min(lost.at - since, actual - taken)), 3)} | steps
    name = str(what.slice)
    before = root.number if root else told.number
    return Recovery(
        number=told.number,
        at=told.at,
        slice=what.slice,
        cause=fault.what.spec if fault else root.text if root else "not known any more",
        fault=fault,
        lost=lost,
        steps=steps,
        actual_s=round(actual, 3),
        idle_s=round(actual if what.seamless else min(actual, what.idle), 3),
        replayed=what.replayed,
        predicted=what.predicted,
        protected_by=_scheme(story.line(Protected, name), fault, before),
        wanted=_scheme(story.line(Switched, name), fault, before),
    )


def _scheme(line: Line[Protected] | Line[Switched], fault: Told[FaultInjected] | None, before: int) -> Scheme | None:
    """The scheme that was named last when the slice broke."""
    last = line.last_by(fault.what.at) if fault else line.last_before(before)
    return last.what.scheme if last else None


def _fault_behind(
    lost: Told[NodeLost], faults: Mapping[str, Sequence[Told[FaultInjected]]]
) -> Told[FaultInjected] | None:
    """The last fault of this node before it was given up; nodes also die without one."""
    known = faults.get(lost.what.node, ())
    position = bisect_right(known, lost.at, key=lambda told: told.what.at)
    return known[position - 1] if position else None


def past_recoveries(events: Sequence[Event]) -> tuple[PastRecovery, ...]:
    """The recoveries as the page shows them: only the steps that took time."""
    return tuple(
        PastRecovery(
            number=one.number,
            at=one.at,
            slice=str(one.slice),
            cause=one.cause,
            scheme=one.protected_by or "",
            steps={name: seconds for name, seconds in one.steps.items() if seconds or name == "detect"},
            predicted=one.predicted or {},
            total_s=one.actual_s,
            replayed=one.replayed,
        )
        for one in recoveries(Chronicle(events))
    )
