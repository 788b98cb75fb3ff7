"""Emptying a node without breaking the run: one slice at a time, and only while everything else works.

A move is an assignment to another node under a higher generation, so it is as safe as a recovery: the new replica
starts from what was shipped, and whatever both publish meanwhile is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from understudy.control.instructions import Assign
from understudy.control.placement import place
from understudy.model.layout import Layout
from understudy.model.messages import ReplicaStatus, State
from understudy.model.snapshot import Assignment, NodeView, Snapshot


def candidates(nodes: Iterable[NodeView]) -> list[NodeView]:
    """Who may be given slices. Draining nodes only if there is nobody else: a slice somewhere beats one nowhere."""
    able = [node for node in nodes if node.connected and node.ready]
    return [node for node in able if not node.draining] or able


def moves(snapshot: Snapshot, layout: Layout) -> Iterator[Assign]:
    """The next slice to leave a draining node, if it is safe to move one now."""
    draining = {node.name for node in snapshot.nodes if node.draining}
    leaving = sorted((a for a in snapshot.assignments if a.node in draining), key=lambda a: a.slice)
    goals = [node.name for node in candidates(snapshot.nodes) if not node.draining]
    if not leaving or not goals or not _settled(snapshot, layout):
        return
    hosts = {a.slice: a.node for a in snapshot.assignments if a.slice != leaving[0].slice}
    goal = place([leaving[0].slice], goals, hosts, layout)[leaving[0].slice]
    moved = replace(leaving[0], node=goal, generation=leaving[0].next_generation)
    yield Assign(moved, f"{moved.slice} moves to {goal} because {leaving[0].node} is being drained")


def _settled(snapshot: Snapshot, layout: Layout) -> bool:
    """Every slice works where it was assigned, and none is still on its way back."""
    nodes = {node.name: node for node in snapshot.nodes}
    assigned = {assignment.slice: assignment for assignment in snapshot.assignments}
    return all(slice_id in assigned and _works(assigned[slice_id], nodes) for slice_id in layout.slices)


def _works(assignment: Assignment, nodes: dict[str, NodeView]) -> bool:
    if assignment.rewind is not None or assignment.failures or assignment.waits_for is not None:
        return False
    node = nodes.get(assignment.node)
    return node is not None and node.connected and any(_at_work(r, assignment) for r in node.replicas)


def _at_work(replica: ReplicaStatus, assignment: Assignment) -> bool:
    present = replica.slice == str(assignment.slice) and replica.generation == assignment.generation
    # The first replica of a slice has nothing to come back from.
    return present and replica.state is State.RUNNING and (replica.steps.done or replica.generation == 1)
