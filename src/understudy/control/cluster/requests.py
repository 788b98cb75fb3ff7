"""Switches that people ask for: checked at once, carried out by the next decision that leaves the slice alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from understudy.control.cluster.secondaries import allowed, strongest
from understudy.control.cluster.suggestions import Origin, Ruling, Suggestion
from understudy.errors import InvalidInput
from understudy.model.layout import Kind, Layout
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.snapshot import Assignment


def check_switch(
    slice_id: SliceId, scheme: Scheme, layout: Layout | None, assigned: Mapping[SliceId, Assignment]
) -> None:
    """Raises InvalidInput if the slice cannot have the scheme."""
    current = assigned.get(slice_id)
    if layout is None or current is None or layout[slice_id.operator].kind is not Kind.OPERATOR:
        operators = [str(s) for s in layout.of_kind(Kind.OPERATOR)] if layout else []
        raise InvalidInput(
            f"{slice_id} cannot be switched",
            why="only slices of operators that run have a scheme",
            fix=f"name one of {', '.join(operators)}" if operators else "wait until data flows",
        )
    vertex = layout[slice_id.operator]
    if allowed(scheme, vertex, current.passive) is not scheme:
        raise InvalidInput(
            f"{slice_id} cannot be protected by {scheme}",
            why="its operator is not deterministic, so two copies of its work would disagree",
            fix=f"choose {strongest(vertex, current.passive)} or a scheme below it",
        )


def requested(
    assignments: Iterable[Assignment], layout: Layout, requests: Mapping[SliceId, Scheme]
) -> Iterator[Suggestion]:
    """The switches that can be carried out. One that a slice cannot have any more is dropped."""
    for assignment in assignments:
        scheme = requests.get(assignment.slice)
        if scheme is None or allowed(scheme, layout[assignment.slice.operator], assignment.passive) is not scheme:
            continue
        changed = switched(assignment, scheme, None)
        if changed != assignment:
            yield Suggestion(Origin.REQUEST, changed, f"{assignment.slice}: {scheme}")


def switched(assignment: Assignment, scheme: Scheme, ship_every: int | None) -> Assignment:
    """With another scheme; secondaries that failed under the old one are not held against it."""
    return replace(assignment, scheme=scheme, ship_every=ship_every, mishaps=0, rests_until=0)


def still_open(requests: Mapping[SliceId, Scheme], ruling: Ruling) -> dict[SliceId, Scheme]:
    """The requests that had to wait, because something more urgent happened to their slice in this decision."""
    waiting = {one.slice for one in ruling.declined if one.origin is Origin.REQUEST}
    urgent = {s for s, one in ruling.accepted.items() if one.origin is Origin.RECOVERY}
    return {s: scheme for s, scheme in requests.items() if s in waiting | urgent}
