"""What a missed heartbeat sets off (Zhang et al. 2010): nothing yet, or a reversible reaction at once.

A conservative slice waits until its primary's node counts as dead; then its secondary is promoted. A speculative one
lets its suspended secondary stand in at the first miss, and both work. If the primary is heard of again, it reads back
the newer state the secondary has shipped, and the secondary is rolled back; if it stays silent, the secondary is
promoted. A false alarm costs little and loses nothing, because publishing is put-if-absent.

An active standby works anyway, and stands in by publishing what it holds. That costs nothing, so it is done at the
first miss whatever the reaction.

On a saturated host every node is late at times, and secondaries that stand in for that add to the load. Three rules
limit it: the detector compares a node with the others; a slice doubles its patience with every false alarm; and only a
few secondaries a minute may stand in across the cluster without having shown to be of use, the most important first. A
node whose connection broke is nearly proven to be dead, and none of these rules holds for it.

What was decided, and what came of it, is in the assignment, so nothing has to be remembered here, and a manager that is
killed in between goes on from what it finds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from understudy.control.cluster.detector import Detector, stalls
from understudy.control.cluster.secondaries import healthy_secondary
from understudy.control.cluster.suggestions import Origin, Suggestion
from understudy.model.capabilities import OFF, ROWS, rank
from understudy.model.config import DEFAULTS, RecoverySection
from understudy.model.layout import Layout, Vertex
from understudy.model.messages import State
from understudy.model.recovery import Reaction, Scheme
from understudy.model.snapshot import Alarms, Assignment, NodeView

MINUTE_S = 60.0
FORGIVEN_S = 60.0
"""A false alarm is forgotten after so long without another one."""
MOST_DOUBLINGS = 5


def react(
    assignments: Iterable[Assignment],
    nodes: Mapping[str, NodeView],
    layout: Layout,
    detector: Detector,
    for_all: Reaction | None = None,
    age_s: float = 0.0,
    limits: RecoverySection = DEFAULTS.recovery,
) -> Iterator[Suggestion]:
    """Lets secondaries stand in for nodes that are suspected, and rolls back those whose primaries are well again."""
    known, everyone = list(assignments), list(nodes.values())
    concerned = [
        one for one in known if one.standing_in or _is_suspect(one, nodes[one.node], everyone, detector, age_s)
    ]
    if not concerned:
        return
    left = limits.stand_ins_per_minute - sum(_unproven(assignment, nodes, age_s) for assignment in known)
    for assignment in sorted(concerned, key=lambda one: importance(one, layout)):
        node = nodes[assignment.node]
        if assignment.standing_in:
            if _is_well(assignment, node, nodes, detector):
                reason = f"{assignment.slice}: {node.name} is well again"
                yield Suggestion(Origin.REACTION, _rolled_back(assignment, nodes, age_s), reason)
            continue
        standby, secondary = assignment.secondary, healthy_secondary(assignment, nodes)
        if standby is None or secondary is None or detector.suspects(nodes[standby.node], everyone):
            continue
        # A node that said so, or whose connection broke, is as good as dead: then neither budget nor room matters.
        proven = not node.connected or node.gone is not None
        if (proven or (left > 0 and not assignment.throttle.on)) and _may_stand_in(
            assignment, layout[assignment.slice.operator], for_all
        ):
            left -= not proven
            reason = f"{assignment.slice}: {standby.node} stands in, because {_sign(assignment, node, detector)}"
            changed = _standing_in(assignment, secondary.first_bags, None if proven else age_s)
            yield Suggestion(Origin.REACTION, changed, reason)


def importance(assignment: Assignment, layout: Layout) -> tuple[float, int, str]:
    """The most important slices come first: those with the shortest objective, then those with the best protection."""
    objective_s = layout[assignment.slice.operator].recovery.objective_s
    return (math.inf if objective_s is None else objective_s, -rank(assignment.scheme), str(assignment.slice))


def patience(alarms: Alarms, age_s: float) -> int:
    """How many times longer than usual a node must be silent, after false alarms."""
    return 1 << min(MOST_DOUBLINGS, _unforgiven(alarms, age_s))


def _unforgiven(alarms: Alarms, age_s: float) -> int:
    """False alarms that still count: one is forgiven for every minute without another."""
    return max(0, alarms.false - int(max(0.0, age_s - alarms.at) // FORGIVEN_S))


def _unproven(assignment: Assignment, nodes: Mapping[str, NodeView], age_s: float) -> int:
    """How often it stood in during the last minute, as far as that counts against the budget."""
    recent = len(_recent(assignment.alarms, age_s))
    return recent - (recent > 0 and assignment.standing_in and _useful(assignment, nodes))


def _recent(alarms: Alarms, age_s: float) -> tuple[float, ...]:
    return tuple(at for at in alarms.unproven if age_s - at < MINUTE_S)


def _useful(assignment: Assignment, nodes: Mapping[str, NodeView]) -> bool:
    """Whether a secondary that stands in has made something that nobody else had made."""
    secondary = healthy_secondary(assignment, nodes)
    return secondary is not None and secondary.first_bags > assignment.alarms.first_bags


def _standing_in(assignment: Assignment, first_bags: int, charged_at: float | None) -> Assignment:
    alarms = replace(assignment.alarms, first_bags=first_bags)
    if charged_at is not None:
        alarms = replace(alarms, unproven=(*_recent(alarms, charged_at), charged_at))
    return replace(assignment, standing_in=True, alarms=alarms)


def _rolled_back(assignment: Assignment, nodes: Mapping[str, NodeView], age_s: float) -> Assignment:
    """The secondary no longer stands in; it was a false alarm if nothing came of it."""
    alarms = assignment.alarms
    if _useful(assignment, nodes):
        alarms = Alarms(unproven=alarms.unproven[:-1])
    else:
        alarms = replace(alarms, false=min(MOST_DOUBLINGS, _unforgiven(alarms, age_s)) + 1, at=age_s)
    return replace(assignment, standing_in=False, alarms=alarms)


def covered(node: NodeView, assignments: Iterable[Assignment], nodes: Mapping[str, NodeView]) -> bool:
    """Whether all that a node hosts is worked on elsewhere, so that there is time to wait for it."""
    hosted = [assignment for assignment in assignments if assignment.node == node.name]
    return bool(hosted) and all(one.standing_in and healthy_secondary(one, nodes) is not None for one in hosted)


def _may_stand_in(assignment: Assignment, vertex: Vertex, for_all: Reaction | None) -> bool:
    """Two copies will work for a while, so both must come to the same result. An active replica already publishes, so
    it never stands in.

    Not where a bag must be made again: the state of the secondary may be past it already.
    """
    scheme, reaction = assignment.scheme, for_all or vertex.recovery.reaction
    if assignment.rewind is not None or scheme is Scheme.ACTIVE_REPLICATION or ROWS[scheme] == OFF:
        return False
    if reaction != Reaction.SPECULATIVE and scheme is not Scheme.ACTIVE_STANDBY:
        return False
    return vertex.deterministic and not assignment.passive and vertex.replays


def _is_well(assignment: Assignment, node: NodeView, nodes: Mapping[str, NodeView], detector: Detector) -> bool:
    """The node is trusted again, and the primary has read back what it missed: it is where its secondary is."""
    primary = node.hosting(assignment.slice, assignment.generation)
    secondary = healthy_secondary(assignment, nodes)
    trusted = detector.trusts(node, nodes.values())
    if primary is None or primary.state is not State.RUNNING or not trusted or stalls(primary, detector.limits):
        return False
    return secondary is None or primary.epoch >= secondary.epoch - 1


def _is_suspect(
    assignment: Assignment, node: NodeView, everyone: list[NodeView], detector: Detector, age_s: float
) -> bool:
    """The node as a whole, or this one replica, which has input and makes nothing of it."""
    primary = node.hosting(assignment.slice, assignment.generation)
    stalled = primary is not None and stalls(primary, detector.limits)
    return stalled or detector.suspects(node, everyone, patience(assignment.alarms, age_s))


def _sign(assignment: Assignment, node: NodeView, detector: Detector) -> str:
    primary = node.hosting(assignment.slice, assignment.generation)
    if not node.connected:
        return f"{node.name} is disconnected"
    if node.slow:
        return f"{node.name} says that it is slow"
    if primary is not None and stalls(primary, detector.limits):
        return f"its primary has finished nothing for {primary.stalled_s:.1f} s"
    if node.jvm_silent_s > node.silent_s:
        return f"the JVM of {node.name} has not moved for {node.jvm_silent_s:.2f} s"
    return f"{node.name} has been silent for {node.silent_s:.2f} s"
