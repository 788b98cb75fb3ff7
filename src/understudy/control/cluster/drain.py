"""Emptying a node without breaking the run: one replica at a time, and only while everything else works.

Where a secondary stands by elsewhere, it takes over. Otherwise the slice is assigned to another node under a higher
generation, which is as safe as a recovery: the new replica starts from what was shipped, and whatever both publish
meanwhile is the same. A secondary on the node goes, and another starts on a node that takes slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from understudy.control.cluster.placement import candidates, place
from understudy.control.cluster.secondaries import burdens, healthy_secondary, promote
from understudy.control.cluster.snapshot import Snapshot
from understudy.control.cluster.suggestions import Origin, Suggestion
from understudy.model.capabilities import OFF, ROWS
from understudy.model.layout import Layout
from understudy.model.messages import ReplicaStatus, State
from understudy.model.snapshot import Assignment, NodeView


def moves(snapshot: Snapshot, layout: Layout) -> Iterator[Suggestion]:
    """The next replica to leave a draining node, if it is safe to move one now."""
    draining = {node.name for node in snapshot.nodes if node.draining}
    goals = [node.name for node in candidates(snapshot.nodes) if not node.draining]
    if not draining or not goals or not _settled(snapshot, layout):
        return
    nodes = {node.name: node for node in snapshot.nodes}
    for assignment in sorted(snapshot.assignments, key=lambda a: a.slice):
        if assignment.node in draining and not _waits_for_secondary(
            assignment, draining, snapshot.config.recovery.max_secondary_failures
        ):
            yield _leave(assignment, snapshot, layout, nodes, goals)
            return
        if assignment.secondary is not None and assignment.secondary.node in draining:
            name = assignment.secondary.node
            reason = f"{assignment.slice}: {name} stands by no longer because it is being drained"
            yield Suggestion(Origin.DRAIN, assignment.alone(), reason)
            return


def _waits_for_secondary(assignment: Assignment, draining: set[str], most: int) -> bool:
    """A secondary is about to be placed where it can take over; moving the slice before would cost a recovery."""
    wanted = ROWS[assignment.scheme] != OFF and assignment.mishaps < most
    return wanted and (assignment.secondary is None or assignment.secondary.node in draining)


def _leave(
    assignment: Assignment, snapshot: Snapshot, layout: Layout, nodes: Mapping[str, NodeView], goals: list[str]
) -> Suggestion:
    reason = f"{assignment.node} is being drained"
    if assignment.secondary is not None and assignment.secondary.node in goals and healthy_secondary(assignment, nodes):
        return promote(assignment, reason, Origin.DRAIN)
    hosts = {a.slice: a.node for a in snapshot.assignments if a.slice != assignment.slice}
    burden = burdens(snapshot.assignments)
    goal = place([assignment.slice], goals, hosts, layout, burden)[assignment.slice]
    text = f"{assignment.slice} moves to {goal} because {reason}"
    return Suggestion(Origin.DRAIN, assignment.anew(goal), text)


def _settled(snapshot: Snapshot, layout: Layout) -> bool:
    """Every slice works where it was assigned, none is still on its way back, and secondaries do what they shall."""
    nodes = {node.name: node for node in snapshot.nodes}
    assigned = {assignment.slice: assignment for assignment in snapshot.assignments}
    return all(slice_id in assigned and _works(assigned[slice_id], nodes) for slice_id in layout.slices)


def _works(assignment: Assignment, nodes: Mapping[str, NodeView]) -> bool:
    if assignment.rewind is not None or assignment.failures or assignment.waits_for:
        return False
    node = nodes.get(assignment.node)
    primary = node.hosting(assignment.slice, assignment.generation) if node and node.connected else None
    if primary is None or not _at_work(primary):
        return False
    if assignment.secondary is None:
        return True
    secondary = healthy_secondary(assignment, nodes)
    return secondary is not None and secondary.capabilities == ROWS[assignment.scheme]


def _at_work(replica: ReplicaStatus) -> bool:
    # The first replica of a slice has nothing to come back from.
    return replica.state is State.RUNNING and (replica.steps.done or replica.generation == 1)
