"""How a missed heartbeat is answered (seed 001): patiently, or at once and reversibly.

A conservative slice waits until its primary's node counts as dead; then its secondary is promoted. A speculative one
wakes its suspended secondary at the first miss, and both work. Should the primary answer again, it reads back the newer
state the secondary has shipped, and the secondary sleeps; should it stay silent, the secondary is promoted for good.
Waking for nothing costs little and loses nothing, because publishing is put-if-absent.

An active standby works anyway: to wake it is to let it publish what it holds. That costs nothing, so it is done at the
first miss whatever the reaction.

What was decided is in the assignment, so nothing has to be remembered here, and a manager that is killed in between
goes on from what it finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from understudy.control.detector import Detector, stalls
from understudy.control.instructions import Assign
from understudy.control.standby import standing_by
from understudy.model.layout import Layout, Vertex
from understudy.model.messages import State
from understudy.model.recovery import Guarantee, Reaction, Scheme
from understudy.model.snapshot import Assignment, NodeView
from understudy.model.switches import OFF, ROWS


def react(
    assignments: Iterable[Assignment],
    nodes: Mapping[str, NodeView],
    layout: Layout,
    detector: Detector,
    for_all: Reaction | None = None,
) -> Iterator[Assign]:
    """Wakes secondaries of nodes that are suspected, and lets those sleep whose primaries are well again."""
    for assignment in assignments:
        node = nodes[assignment.node]
        if assignment.awake:
            if _is_well(assignment, node, nodes, detector):
                yield Assign(replace(assignment, awake=False), f"{assignment.slice}: {node.name} is well again")
        elif _is_suspect(assignment, node, detector) and _can_wake(
            assignment, nodes, layout[assignment.slice.operator], for_all
        ):
            standby = assignment.standby
            if standby is not None and not detector.suspects(nodes[standby.node]):
                reason = f"{assignment.slice}: {standby.node} wakes, because {_sign(assignment, node)}"
                yield Assign(replace(assignment, awake=True), reason)


def covered(node: NodeView, assignments: Iterable[Assignment], nodes: Mapping[str, NodeView]) -> bool:
    """Whether all that a node hosts is worked on elsewhere, so that there is time to wait for it."""
    hosted = [assignment for assignment in assignments if assignment.node == node.name]
    return bool(hosted) and all(one.awake and standing_by(one, nodes) is not None for one in hosted)


def _can_wake(assignment: Assignment, nodes: Mapping[str, NodeView], vertex: Vertex, for_all: Reaction | None) -> bool:
    """Two copies will work for a while, so both must come to the same result, and one that works already need not wake.

    Not where a bag must be made again: the state of the secondary may be past it already.
    """
    scheme, reaction = assignment.scheme, for_all or vertex.recovery.reaction
    if assignment.rewind is not None or scheme is Scheme.ACTIVE_REPLICATION or ROWS[scheme] == OFF:
        return False
    if reaction != Reaction.SPECULATIVE and scheme is not Scheme.ACTIVE_STANDBY:
        return False
    agree = vertex.deterministic and not assignment.passive and Guarantee(vertex.recovery.guarantee).replays
    return agree and standing_by(assignment, nodes) is not None


def _is_well(assignment: Assignment, node: NodeView, nodes: Mapping[str, NodeView], detector: Detector) -> bool:
    """The node answers, and the primary is where its secondary is: it has read back what it missed."""
    primary = node.hosting(assignment.slice, assignment.generation)
    secondary = standing_by(assignment, nodes)
    if primary is None or primary.state is not State.RUNNING or not detector.trusts(node) or stalls(primary):
        return False
    return secondary is None or primary.epoch >= secondary.epoch - 1


def _is_suspect(assignment: Assignment, node: NodeView, detector: Detector) -> bool:
    """The node as a whole, or this one replica, which has input and makes nothing of it."""
    primary = node.hosting(assignment.slice, assignment.generation)
    return detector.suspects(node) or (primary is not None and stalls(primary))


def _sign(assignment: Assignment, node: NodeView) -> str:
    primary = node.hosting(assignment.slice, assignment.generation)
    if not node.connected:
        return f"{node.name} is disconnected"
    if node.slow:
        return f"{node.name} says that it is slow"
    if primary is not None and stalls(primary):
        return f"its primary has finished nothing for {primary.stalled_s:.1f} s"
    if node.jvm_silent_s > node.silent_s:
        return f"the JVM of {node.name} has not moved for {node.jvm_silent_s:.2f} s"
    return f"{node.name} has been silent for {node.silent_s:.2f} s"
