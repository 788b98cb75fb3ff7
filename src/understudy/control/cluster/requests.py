"""What people ask for. Switches and moves are checked at once and carried out when nothing more urgent concerns the
slice; checkpoints are shipped at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from understudy.control.cluster.secondaries import allowed, strongest
from understudy.control.cluster.suggestions import Origin, Ruling, Suggestion
from understudy.errors import InvalidInput
from understudy.model.layout import Kind, Layout, Vertex
from understudy.model.messages import ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee, Scheme
from understudy.model.snapshot import Assignment, Move, NodeView


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
            why=_why_not(vertex),
            fix=f"choose {strongest(vertex, current.passive)} or a scheme below it",
        )


def check_move(
    slice_id: SliceId,
    move: Move,
    layout: Layout | None,
    assigned: Mapping[SliceId, Assignment],
    nodes: Mapping[str, NodeView],
) -> None:
    """Raises InvalidInput if the slice cannot go to the node."""
    current, node = assigned.get(slice_id), nodes.get(move.node)
    if layout is None or current is None:
        known = [str(s) for s in layout.slices] if layout else []
        raise InvalidInput(
            f"{slice_id} cannot be moved",
            why="there is no such slice" if known else "data does not flow yet",
            fix=f"name one of {', '.join(known)}" if known else "wait until it does",
        )
    able = sorted(one.name for one in nodes.values() if _takes_slices(one) and one.name != current.node)
    fix = f"name one of {', '.join(able)}" if able else "join another node with 'understudy node'"
    if node is None:
        raise InvalidInput(f"{slice_id} cannot be moved to {move.node}", why="there is no such node", fix=fix)
    if move.node == current.node:
        raise InvalidInput(f"{slice_id} cannot be moved to {move.node}", why="its primary is there already", fix=fix)
    if not _takes_slices(node):
        why = "the node is being drained" if node.draining else "the node is not ready"
        raise InvalidInput(f"{slice_id} cannot be moved to {move.node}", why=why, fix=fix)
    _check_loss(slice_id, move, layout[slice_id.operator], current)


def shipping(
    wanted: Iterable[SliceId],
    layout: Layout | None,
    assigned: Mapping[SliceId, Assignment],
    nodes: Mapping[str, NodeView],
) -> dict[SliceId, tuple[str, ReplicaStatus]]:
    """The primaries that are to ship what they have, and their nodes: those named, or all that keep checkpoints.

    Raises InvalidInput for one that is named and cannot.
    """
    primaries = {one: _shipper(one, assigned, nodes) for one in layout.of_kind(Kind.OPERATOR)} if layout else {}
    able = {one: found for one, found in primaries.items() if found is not None}
    named = list(wanted)
    for slice_id in named:
        if slice_id not in able:
            raise InvalidInput(
                f"{slice_id} cannot ship a checkpoint",
                why="no primary of such a slice works and keeps checkpoints now",
                fix=f"name one of {', '.join(map(str, able))}" if able else "wait until data flows",
            )
    if not able:
        raise InvalidInput(
            "no slice can ship a checkpoint",
            why="none works and keeps checkpoints now" if layout else "data does not flow yet",
            fix="see 'understudy status'" if layout else "wait until it does",
        )
    return {slice_id: able[slice_id] for slice_id in named or able}


def _shipper(
    slice_id: SliceId, assigned: Mapping[SliceId, Assignment], nodes: Mapping[str, NodeView]
) -> tuple[str, ReplicaStatus] | None:
    """The primary of a slice with its node, if it works and keeps checkpoints."""
    current = assigned.get(slice_id)
    node = nodes.get(current.node) if current else None
    if current is None or node is None or not node.connected:
        return None
    found = node.hosting(slice_id, current.generation)
    keeps = found is not None and found.ship_every > 0 and found.epoch >= 0
    return (node.name, found) if found is not None and keeps else None


def _takes_slices(node: NodeView) -> bool:
    return node.connected and node.ready and not node.draining


def _check_loss(slice_id: SliceId, move: Move, vertex: Vertex, current: Assignment) -> None:
    """A slice of which a failure takes something is not moved by the way.

    Where replays are allowed, the legacy way loses nothing: the primary ships all it has before it is replaced.
    """
    if move.legacy or vertex.kind is not Kind.OPERATOR:
        return
    unkept = current.scheme is Scheme.NONE
    if unkept or not Guarantee(vertex.recovery.guarantee).replays:
        kept = f"its scheme is {current.scheme}" if unkept else f"its guarantee is {vertex.recovery.guarantee}"
        raise InvalidInput(
            f"{slice_id} cannot be moved without loss",
            why=f"{kept}, so what a failure would take a move takes as well",
            fix="accept that with --legacy, or give the operator the guarantee precise or rollback",
        )


def _why_not(vertex: Vertex) -> str:
    if vertex.recovery.guarantee == Guarantee.AMNESIA:
        return "under amnesia no state is kept, so a secondary would lack what came before it"
    return "its operator is not deterministic, so two copies of its work would disagree"


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
