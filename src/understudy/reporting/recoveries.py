"""From events to recoveries, the one computation behind the report, the page and the metrics.

A recovery is told by its `Recovered` event and by the chain of causes above it: the slice was placed because a node was
lost, and the node was lost because somebody killed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from understudy.model.events import (
    Assigned,
    DomainLost,
    Event,
    FaultInjected,
    ManagerStarted,
    Moved,
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
from understudy.reporting.losses import Loss, Losses

KINDS = frozenset(
    record.kind
    for record in (
        FaultInjected,
        ManagerStarted,
        NodeLost,
        DomainLost,
        Assigned,
        Promoted,
        Moved,
        Protected,
        Switched,
        Recovered,
    )
)
"""The events recoveries are told by; the others may be forgotten."""


@dataclass(frozen=True)
class Recovery:
    """A slice that came back.

    - `fault` was injected, `lost` is the node or the domain that was given up; each is None if there was none.
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
    lost: Loss | None
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
    losses = Losses(story)
    # After a move, what is told as a recovery is only how it went.
    failed = (told for told in story.of(Recovered) if story.get_of(Moved, told.cause) is None)
    return tuple(_recovery(told, story, losses) for told in failed)


def _recovery(told: Told[Recovered], story: Chronicle, losses: Losses) -> Recovery:
    what = told.what
    causes = list(story.causes(told))
    lost = next((found for one in causes if (found := losses.get(one.number)) is not None), None)
    # Without a lost node somebody moved the slice, or its replica failed: the last cause tells which.
    root = lost or (causes[-1] if causes else None)
    fault = losses.fault_behind(lost) if lost else None
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
