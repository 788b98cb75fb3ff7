"""Which replicas have to be deployed, changed or stopped, so that every node hosts what is assigned to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from understudy.control.cluster.instructions import DeployReplica, StopReplica
from understudy.control.cluster.secondaries import effective
from understudy.model.capabilities import ALL, PAUSED, ROWS, Capabilities
from understudy.model.layout import Kind, Layout, Vertex
from understudy.model.messages import Deploy, ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee, Scheme
from understudy.model.snapshot import Assignment, NodeView


class Role(NamedTuple):
    """What one replica of a slice shall be, and where, as far as its status says what it was told."""

    node: str
    generation: int
    primary: bool
    capabilities: Capabilities
    ship_every: int


def deploy_missing(
    assigned: Mapping[SliceId, Assignment],
    nodes: Mapping[str, NodeView],
    layout: Layout,
    delivered: Mapping[str, int],
) -> Iterator[DeployReplica]:
    """Replicas that are assigned and not there, or that were last told something else.

    A slice that found damaged bags waits until the slices that wrote them have made them again.
    """
    for assignment in assigned.values():
        if any(assigned[one].rewind is not None for one in assignment.waits_for if one in assigned):
            continue
        for role in _roles(assignment, layout):
            name, node = role.node, nodes.get(role.node)
            if node is None or not node.connected or not node.ready:
                continue
            there = node.hosting(assignment.slice, role.generation)
            if there is not None and agrees(there, role):
                continue
            if there is None:
                reason = f"{name} does not host {assignment.slice} yet"
            else:
                reason = f"{assignment.slice} on {name} shall be {role.capabilities}"
            yield DeployReplica(name, _deploy(role, assignment, layout, delivered), reason)


def stop_strangers(nodes: Iterable[NodeView], assigned: Mapping[SliceId, Assignment]) -> Iterator[StopReplica]:
    """Replicas that nobody assigned, or that were replaced. `assigned` is what held before this decision: who was
    replaced just now is stopped one tick after its successor was deployed."""
    for node in nodes:
        for replica in node.replicas:
            current = assigned.get(replica.slice)
            if current is None or hosts_of(current).get(node.name) != replica.generation:
                yield StopReplica(node.name, replica.slice, replica.generation, "another replica took over")


def deployments(
    assignment: Assignment, layout: Layout, delivered: Mapping[str, int] | None = None
) -> Iterator[tuple[str, Deploy]]:
    """What the primary, the secondary and the mover of a slice shall be, and where."""
    for role in _roles(assignment, layout):
        yield role.node, _deploy(role, assignment, layout, delivered or {})


def _roles(assignment: Assignment, layout: Layout) -> Iterator[Role]:
    interval = _interval(layout[assignment.slice.operator], assignment)
    placed, moving = assignment.secondary, assignment.moving
    paused = moving is not None and moving.paused_at is not None
    yield Role(assignment.node, assignment.generation, True, PAUSED if paused else ALL, interval)
    if placed is not None and assignment.standing_in:
        yield Role(placed.node, placed.generation, False, ALL, 1)
    elif placed is not None:
        yield Role(placed.node, placed.generation, False, ROWS[effective(assignment)], 0)
    if moving is not None and moving.generation:
        # It works beside the primary, so that nothing is missing when it takes over; a secondary does what it will do.
        row = ALL if moving.primary else ROWS[effective(assignment)]
        yield Role(moving.node, moving.generation, False, row, 0)


def _deploy(role: Role, assignment: Assignment, layout: Layout, delivered: Mapping[str, int]) -> Deploy:
    """Only a primary makes damaged bags again, and, of a sink, goes on after what it delivered."""
    name, primary = assignment.slice.operator, role.primary
    return Deploy(
        slice=assignment.slice,
        generation=role.generation,
        primary=primary,
        capabilities=role.capabilities,
        rewind=assignment.rewind if primary else None,
        rewind_to=assignment.rewind_to if primary else -1,
        resume_at=delivered.get(name, 0) if primary and layout[name].kind is Kind.SINK else 0,
        ship_every=role.ship_every,
    )


def _interval(vertex: Vertex, assignment: Assignment) -> int:
    """Epochs between two shipped checkpoints; 0 where nothing is kept."""
    if assignment.scheme is Scheme.NONE or vertex.recovery.guarantee == Guarantee.AMNESIA:
        return 0
    if assignment.throttle.on:
        return vertex.recovery.interval(effective(assignment))
    return assignment.ship_every or vertex.recovery.interval(assignment.scheme)


def agrees(replica: ReplicaStatus, ask: Role | Deploy) -> bool:
    """Whether the replica was told all this; what it has reached by now is another question."""
    told = (replica.primary, replica.asked, replica.ship_every)
    return told == (ask.primary, ask.capabilities, ask.ship_every)


def hosts_of(assignment: Assignment) -> dict[str, int]:
    """The nodes that may host a replica of the slice, and under which generation."""
    found = {assignment.node: assignment.generation}
    if assignment.secondary is not None:
        found[assignment.secondary.node] = assignment.secondary.generation
    if assignment.moving is not None and assignment.moving.generation:
        found[assignment.moving.node] = assignment.moving.generation
    return found
