"""Which nodes are given up, and which of them together: the nodes of a domain that fall silent at once are one failure.

A node that the detector calls dead is given up. The others of its domain go with it if every one of them is dead or
falling: its connection is broken as that of the dead one is, or both are silent on an open connection and this one is
suspected and has been silent since the same moment. Where most of the domain is dead, the sign may differ. A domain of
which one node is well is never given up; its dead nodes are lost one by one. Record:
docs/decisions/0017-correlated-failures.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from understudy.control.cluster.instructions import LoseDomain, LoseNode
from understudy.control.cluster.reactions import covered
from understudy.control.cluster.snapshot import Snapshot
from understudy.model.snapshot import NodeView


def lose_nodes(snapshot: Snapshot) -> Iterator[LoseNode | LoseDomain]:
    """The nodes that count as dead now, by domain where all of a domain go."""
    dead = [node for node in snapshot.nodes if _is_dead(node, snapshot)]
    for domain in dict.fromkeys(node.domain for node in dead):
        lost = [node for node in dead if node.domain == domain]
        members = [node for node in snapshot.nodes if node.domain == domain]
        if domain and len(members) > 1 and _falls(members, lost, snapshot):
            yield LoseDomain(domain, tuple(n.name for n in members), snapshot.replace, _why_domain(domain, members))
        else:
            # One that was given notice was to go anyway.
            yield from (
                LoseNode(node.name, snapshot.replace and node.leaves_s is None, _why_lost(node)) for node in lost
            )


def _is_dead(node: NodeView, snapshot: Snapshot) -> bool:
    """Who is covered has more time, so that is only asked about nodes that would be dead otherwise."""
    detector, nodes = snapshot.detector, snapshot.nodes
    return detector.dead(node, nodes) and detector.dead(
        node, nodes, covered=covered(node, snapshot.assignments, snapshot.by_name)
    )


def _falls(members: list[NodeView], dead: list[NodeView], snapshot: Snapshot) -> bool:
    """Whether all nodes of a domain are gone, given those that are dead: each other one fell silent no later."""
    most = 2 * len(dead) > len(members)
    since_s = min(_quiet_s(node) for node in dead) - snapshot.detector.missed_s
    others = [node for node in snapshot.nodes if node not in members]

    def falling(node: NodeView) -> bool:
        if _broken(node) and any(_broken(other) for other in dead):
            return True
        same_sign = any(_broken(node) == _broken(other) for other in dead)
        suspected = snapshot.detector.suspects(node, [node, *others])
        return suspected and _quiet_s(node) >= since_s and (same_sign or most)

    return all(node in dead or falling(node) for node in members)


def _quiet_s(node: NodeView) -> float:
    return max(node.silent_s, node.jvm_silent_s)


def _broken(node: NodeView) -> bool:
    return not node.connected or node.gone is not None


def _why_lost(node: NodeView) -> str:
    if node.gone is not None:
        return f"{node.name} ended: {node.gone}"
    if node.connected and node.jvm_silent_s > node.silent_s:
        return f"the JVM of {node.name} has not moved for {node.jvm_silent_s:.2f} s"
    return f"{node.name} has been {'silent' if node.connected else 'disconnected'} for {node.silent_s:.2f} s"


def _why_domain(domain: str, members: list[NodeView]) -> str:
    names = ", ".join(node.name for node in members)
    return f"{domain} is lost, all {len(members)} nodes of it: {names}; {_why_lost(members[0])}"
