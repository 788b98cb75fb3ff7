"""Whether nothing is on its way back: what is only an improvement waits until then."""

from __future__ import annotations

from understudy.control.cluster.secondaries import effective, healthy_secondary, placeable
from understudy.control.cluster.snapshot import Snapshot
from understudy.model.capabilities import OFF, ROWS
from understudy.model.layout import Layout
from understudy.model.messages import State
from understudy.model.snapshot import Assignment


def is_calm(snapshot: Snapshot, layout: Layout) -> bool:
    """Every primary works where it was assigned, and none is still on its way back."""
    assigned = snapshot.assigned
    return all(s in assigned and _works(assigned[s], snapshot) for s in layout.slices)


def is_settled(snapshot: Snapshot, layout: Layout) -> bool:
    """Besides, every secondary does what its scheme asks for, no slice moves, and no node is being emptied."""
    if any(node.draining for node in snapshot.nodes) or any(one.moving for one in snapshot.assignments):
        return False
    return is_calm(snapshot, layout) and all(_protected(one, snapshot) for one in snapshot.assignments)


def _works(assignment: Assignment, snapshot: Snapshot) -> bool:
    if assignment.rewind is not None or assignment.failures or assignment.waits_for:
        return False
    node = snapshot.by_name.get(assignment.node)
    primary = node.hosting(assignment.slice, assignment.generation) if node and node.connected else None
    # The first replica of a slice has nothing to come back from.
    return primary is not None and primary.state is State.RUNNING and (primary.steps.done or primary.generation == 1)


def _protected(assignment: Assignment, snapshot: Snapshot) -> bool:
    row, nodes = ROWS[effective(assignment)], snapshot.by_name
    if assignment.standing_in:
        return False
    if row == OFF:
        return assignment.secondary is None
    if assignment.secondary is None:
        return not placeable(assignment, nodes)
    found = healthy_secondary(assignment, nodes)
    return found is not None and found.capabilities == row
