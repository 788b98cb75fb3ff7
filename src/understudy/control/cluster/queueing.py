"""The order in which slices are placed anew, and how many at once.

Planned slices come first: what they publish is what the plan was made for. Then upstream before downstream, because a
slice that comes back before those it reads only waits for them. Operator slices of a lost domain are restored from
their checkpoints a few at a time, as many as there are cores; the others wait for one of these to be back. Sources and
sinks take no query to start and do not wait, and neither do slices of a node that was lost alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from understudy.control.cluster.planned import is_planned
from understudy.control.cluster.snapshot import Snapshot
from understudy.model.config import Config
from understudy.model.layout import Kind, Layout
from understudy.model.names import SliceId
from understudy.model.snapshot import Assignment, NodeView

CORES = 2
"""Of a node whose master does not say how many it has."""
_LOCAL = re.compile(r"local\[(\d+)\]")


def admitted(slices: Sequence[SliceId], snapshot: Snapshot, layout: Layout) -> list[SliceId]:
    """Those that are placed in this decision, in their order."""
    assigned = snapshot.assigned
    free = at_once(snapshot) - _coming_back(snapshot, layout)
    found = []
    for slice_id in in_order(slices, snapshot, layout):
        before = assigned.get(slice_id)
        together = before is not None and before.node in snapshot.lost_together
        if together and layout[slice_id.operator].kind is Kind.OPERATOR:
            free -= 1
            if free < 0:
                continue
        found.append(slice_id)
    return found


def in_order(slices: Sequence[SliceId], snapshot: Snapshot, layout: Layout) -> list[SliceId]:
    """Planned slices first, then upstream before downstream."""
    depth = {vertex.name: number for number, vertex in enumerate(layout.vertices)}
    return sorted(slices, key=lambda s: (not is_planned(s, snapshot), depth[s.operator], s))


def at_once(snapshot: Snapshot) -> int:
    """How many operator slices may be on their way back."""
    configured = snapshot.config.recovery.at_once
    if configured is not None:
        return configured
    return max(1, cores_of(snapshot.config) * sum(node.connected and node.ready for node in snapshot.nodes))


def cores_of(config: Config) -> int:
    """Of every node, as far as its master says so."""
    local = _LOCAL.fullmatch(config.cluster.master)
    return int(local[1]) if local else CORES


def _coming_back(snapshot: Snapshot, layout: Layout) -> int:
    """Operator slices that were placed again and have made nothing new yet.

    One that waits for bags to be made again is not deployed and takes no core. They may be those of a slice in the
    queue, which would otherwise wait for the one that waits for it.
    """
    nodes = snapshot.by_name
    return sum(
        a.generation > 1 and layout[a.slice.operator].kind is Kind.OPERATOR and not _is_back(a, nodes.get(a.node))
        for a in snapshot.assignments
        if a.node in nodes and not a.waits_for
    )


def _is_back(assignment: Assignment, node: NodeView | None) -> bool:
    primary = node.hosting(assignment.slice, assignment.generation) if node else None
    return primary is not None and primary.is_back
