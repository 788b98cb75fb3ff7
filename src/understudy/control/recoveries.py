"""Past recoveries, followed from 'it is back' along the causes to what broke."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from understudy.model.event import Event
from understudy.model.messages import STEPS
from understudy.model.page import PastRecovery

KINDS = frozenset({"fault", "manager", "node_lost", "assigned", "promoted", "protection", "recovered"})
"""The events a recovery is told by; the others may be forgotten."""


def past_recoveries(events: Sequence[Event]) -> tuple[PastRecovery, ...]:
    """One for every slice that came back, injected fault or not."""
    known = {event.number: event for event in events}
    faults = [event for event in events if event.kind == "fault"]
    return tuple(_told(event, known, faults) for event in events if event.kind == "recovered")


def _told(event: Event, known: Mapping[int, Event], faults: Sequence[Event]) -> PastRecovery:
    causes = list(_causes(event, known))
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
        scheme=fields.get("scheme") or _protection(fields["slice"], root or event, known),
        steps=steps,
        predicted={name: float(value) for name, value in (fields.get("predicted") or {}).items()},
        total_s=round(max(0.0, done_at - since) if since is not None else sum(steps.values()), 3),
        replayed=int(fields.get("replayed", 0)),
    )


def _protection(slice_name: str, before: Event, known: Mapping[int, Event]) -> str:
    """What protected a slice when it broke; sources and sinks have no scheme."""
    told = (e for e in known.values() if e.kind == "protection" and e.fields["slice"] == slice_name)
    last = max((e for e in told if e.number < before.number), key=lambda e: e.number, default=None)
    return str(last.fields["scheme"]) if last else ""


def _causes(event: Event, known: Mapping[int, Event]) -> Iterator[Event]:
    """Upwards, as far as we remember; causes have smaller numbers, so this ends."""
    cause = known.get(event.cause) if event.cause is not None else None
    while cause is not None:
        yield cause
        cause = known.get(cause.cause) if cause.cause is not None else None


def _fault_behind(lost: Event, faults: Sequence[Event]) -> Event | None:
    """The last fault of this node before it was given up; others need no injection to die."""
    node = lost.fields.get("node")
    before = [f for f in faults if f.fields.get("target") == node and float(f.fields["at"]) <= lost.at]
    return max(before, key=lambda f: float(f.fields["at"]), default=None)
