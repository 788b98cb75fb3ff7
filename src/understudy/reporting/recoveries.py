"""Past recoveries, followed from 'it is back' along the causes to what broke."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

from understudy.model.event import Event
from understudy.model.messages import STEPS
from understudy.model.page import PastRecovery
from understudy.reporting.chronicle import Chronicle

KINDS = frozenset({"fault", "manager", "node_lost", "assigned", "promoted", "protection", "recovered"})
"""The events a recovery is told by; the others may be forgotten."""


def past_recoveries(events: Sequence[Event]) -> tuple[PastRecovery, ...]:
    """One for every slice that came back, injected fault or not."""
    story = Chronicle(events)
    faults: dict[str, list[Event]] = {}
    for event in sorted(story.of("fault"), key=_struck_at):
        faults.setdefault(str(event.fields.get("target")), []).append(event)
    return tuple(_told(event, story, faults) for event in story.of("recovered"))


def _told(event: Event, story: Chronicle, faults: Mapping[str, Sequence[Event]]) -> PastRecovery:
    causes = list(_causes(event, story))
    lost = next((e for e in causes if e.kind == "node_lost"), None)
    # Without a lost node somebody moved the slice, or its replica failed: the assignment says which.
    root = lost or (causes[-1] if causes else None)
    fault = _fault_behind(lost, faults) if lost else None
    fields = event.fields
    done_at = float(fields.get("done_at") or event.at)
    since = float(fault.fields["at"]) if fault else root.at if root else None
    detect = {"detect": round(lost.at - since, 3)} if lost and since is not None else {}
    steps = detect | {name: round(float(fields[name]), 3) for name in STEPS if fields.get(name)}
    return PastRecovery(
        number=event.number,
        at=event.at,
        slice=fields["slice"],
        cause=fault.fields["spec"] if fault else root.text if root else "not known any more",
        scheme=fields.get("scheme") or _protection(fields["slice"], root or event, story),
        steps=steps,
        predicted={name: float(value) for name, value in (fields.get("predicted") or {}).items()},
        total_s=round(max(0.0, done_at - since) if since is not None else sum(steps.values()), 3),
        replayed=int(fields.get("replayed", 0)),
    )


def _protection(slice_name: str, before: Event, story: Chronicle) -> str:
    """What protected a slice when it broke; sources and sinks have no scheme."""
    last = story.line("protection", slice_name).last_before(before.number)
    return str(last.fields["scheme"]) if last else ""


def _causes(event: Event, story: Chronicle) -> Iterator[Event]:
    """Upwards, as far as we remember; causes have smaller numbers, so this ends."""
    cause = story.get(event.cause)
    while cause is not None:
        yield cause
        cause = story.get(cause.cause)


def _fault_behind(lost: Event, faults: Mapping[str, Sequence[Event]]) -> Event | None:
    """The last fault of this node before it was given up; others need no injection to die."""
    known = faults.get(str(lost.fields.get("node")), ())
    position = bisect_right(known, lost.at, key=_struck_at)
    return known[position - 1] if position else None


def _struck_at(fault: Event) -> float:
    return float(fault.fields["at"])
