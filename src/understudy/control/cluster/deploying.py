"""Which replicas have to be deployed, changed or stopped, so that every node hosts what is assigned to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from understudy.control.cluster.instructions import DeployReplica, StopReplica
from understudy.control.cluster.secondaries import effective
from understudy.model.capabilities import ALL, ROWS
from understudy.model.layout import Kind, Layout, Vertex
from understudy.model.messages import Deploy, ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee, Scheme
from understudy.model.snapshot import Assignment, NodeView


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
        for name, deploy in deployments(assignment, layout, delivered):
            node = nodes.get(name)
            if node is None or not node.connected or not node.ready:
                continue
            there = node.hosting(assignment.slice, deploy.generation)
            if there is None:
                yield DeployReplica(name, deploy, f"{name} does not host {deploy.slice} yet")
            elif not agrees(there, deploy):
                yield DeployReplica(name, deploy, f"{deploy.slice} on {name} shall be {deploy.capabilities}")


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
    """What the primary and the secondary of a slice shall be, and where. A sink goes on after what it delivered."""
    vertex = layout[assignment.slice.operator]
    sink = vertex.kind is Kind.SINK
    yield (
        assignment.node,
        Deploy(
            slice=assignment.slice,
            generation=assignment.generation,
            rewind=assignment.rewind,
            rewind_to=assignment.rewind_to,
            resume_at=(delivered or {}).get(assignment.slice.operator, 0) if sink else 0,
            ship_every=_interval(vertex, assignment),
        ),
    )
    if assignment.secondary is not None:
        placed, standing_in = assignment.secondary, assignment.standing_in
        yield (
            placed.node,
            Deploy(
                slice=assignment.slice,
                generation=placed.generation,
                primary=False,
                capabilities=ALL if standing_in else ROWS[effective(assignment)],
                ship_every=1 if standing_in else 0,
            ),
        )


def _interval(vertex: Vertex, assignment: Assignment) -> int:
    """Epochs between two shipped checkpoints; 0 where nothing is kept."""
    if assignment.scheme is Scheme.NONE or vertex.recovery.guarantee == Guarantee.AMNESIA:
        return 0
    if assignment.throttle.on:
        return vertex.recovery.interval(effective(assignment))
    return assignment.ship_every or vertex.recovery.interval(assignment.scheme)


def agrees(replica: ReplicaStatus, deploy: Deploy) -> bool:
    """Whether the replica was told all this; what it has reached by now is another question."""
    told = (replica.primary, replica.asked, replica.ship_every)
    return told == (deploy.primary, deploy.capabilities, deploy.ship_every)


def hosts_of(assignment: Assignment) -> dict[str, int]:
    """The nodes that may host a replica of the slice, and under which generation."""
    found = {assignment.node: assignment.generation}
    if assignment.secondary is not None:
        found[assignment.secondary.node] = assignment.secondary.generation
    return found
