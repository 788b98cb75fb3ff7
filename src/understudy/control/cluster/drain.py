"""Emptying a node: its slices move away, the most important first and a few at once, while everything else works.

A primary goes to the node where its secondary stands by, or to the one with the least to do; a secondary is replaced
before it is given up. The moves themselves are those of `moving.py`, so nothing is interrupted and nothing is less
protected meanwhile.

A node that was given notice leaves at a certain time. What has not moved by then is handed over as its scheme says,
while the node is still there: the secondary takes over, or the slice is placed anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from understudy.control.cluster.calm import is_calm
from understudy.control.cluster.instructions import ReleaseNode
from understudy.control.cluster.moving import begin
from understudy.control.cluster.placement import candidates, place
from understudy.control.cluster.reactions import importance
from understudy.control.cluster.secondaries import healthy_secondary, promote, successor
from understudy.control.cluster.sites import Placing, Sites, apart
from understudy.control.cluster.snapshot import Snapshot
from understudy.control.cluster.suggestions import Origin, Suggestion
from understudy.model.layout import Layout
from understudy.model.snapshot import Assignment, Move

HAND_OVER_S = 1.0
"""So long before a node leaves, what is left on it is handed over."""


def leave(snapshot: Snapshot, layout: Layout) -> Iterator[Suggestion]:
    """What leaves the draining nodes next."""
    if any(node.draining for node in snapshot.nodes):
        yield from _Drain(snapshot, layout).suggest()


def releases(snapshot: Snapshot, after: Iterable[Assignment]) -> Iterator[ReleaseNode]:
    """Nodes that were given notice and host nothing any more, neither before this decision nor `after` it: where no
    other node is left, one that was about to leave is given slices."""
    held = {name for one in (*snapshot.assignments, *after) for name in one.hosts}
    for node in snapshot.nodes:
        if node.leaves_s is not None and node.connected and node.name not in held and not node.replicas:
            yield ReleaseNode(node.name, f"{node.name} is empty and leaves")


class _Drain:
    """One look at all draining nodes."""

    def __init__(self, snapshot: Snapshot, layout: Layout) -> None:
        self._snapshot, self._layout, self._nodes = snapshot, layout, snapshot.by_name
        self._targets = [node.name for node in candidates(snapshot.nodes) if not node.draining]
        self._known = sorted(snapshot.assignments, key=lambda one: importance(one, layout))
        self._hosts = {one.slice: one.node for one in self._known}
        self._placing = Placing.of(snapshot, layout)
        self._sites = Sites(self._nodes, self._known, self._placing)
        under_way = sum(one.moving is not None for one in self._known)
        self._room = snapshot.config.cluster.moves_at_once - under_way

    def suggest(self) -> Iterator[Suggestion]:
        if not self._targets:
            return
        calm = is_calm(self._snapshot, self._layout)
        for assignment in self._known:
            if not self._drains(assignment.node):
                continue
            if self._is_over(assignment):
                yield self._hand_over(assignment)
            elif assignment.moving is None and self._room > 0 and (calm or self._is_hasty(assignment)):
                self._room -= 1
                yield self._begin(assignment)
        for assignment in self._known if calm else ():
            here = assignment.secondary
            if here is not None and self._drains(here.node) and assignment.moving is None and self._room > 0:
                self._room -= 1
                yield self._replace(assignment, here.node)

    def _drains(self, name: str) -> bool:
        node = self._nodes.get(name)
        return node is not None and node.draining

    def _is_hasty(self, assignment: Assignment) -> bool:
        return self._nodes[assignment.node].leaves_s is not None

    def _is_over(self, assignment: Assignment) -> bool:
        left_s = self._nodes[assignment.node].leaves_s
        return left_s is not None and left_s <= HAND_OVER_S

    def _begin(self, assignment: Assignment) -> Suggestion:
        """After too many replicas that failed elsewhere the slice is stopped first."""
        target, vertex = self._target(assignment), self._layout[assignment.slice.operator]
        often = assignment.mishaps >= self._snapshot.config.recovery.max_secondary_failures
        move = Move(target, legacy=often, hasty=self._is_hasty(assignment))
        reason = f"{assignment.slice} moves from {assignment.node} to {target}: {assignment.node} is being drained"
        return Suggestion(Origin.DRAIN, begin(assignment, move, vertex, self._snapshot.age_s), reason)

    def _target(self, assignment: Assignment) -> str:
        here = assignment.secondary
        if here is not None and here.node in self._targets and healthy_secondary(assignment, self._nodes) is not None:
            self._hosts[assignment.slice] = here.node
            return here.node
        others = {s: node for s, node in self._hosts.items() if s != assignment.slice}
        weights = self._placing.weights
        burden = weights.burdens(self._known)
        chosen = place([assignment.slice], self._targets, others, self._layout, burden, weights)[assignment.slice]
        self._hosts[assignment.slice] = chosen
        return chosen

    def _replace(self, assignment: Assignment, here: str) -> Suggestion:
        """Another secondary comes before this one goes, if there is a node for it besides the primary's."""
        able = [self._nodes[name] for name in self._targets if name != assignment.node]
        if not able:
            reason = f"{assignment.slice}: {here} stands by no longer because it is being drained"
            return Suggestion(Origin.DRAIN, assignment.alone(), reason)
        kept_apart = apart(able, self._nodes.get(assignment.node))
        target = self._sites.choose(assignment.node, [node.name for node in kept_apart])
        self._sites.stand_by(assignment, target)
        moving = Move(target, since=self._snapshot.age_s, primary=False)
        reason = f"{assignment.slice}: {target} will stand by, because {here} is being drained"
        return Suggestion(Origin.DRAIN, replace(assignment, moving=moving), reason)

    def _hand_over(self, assignment: Assignment) -> Suggestion:
        reason = f"{assignment.node} leaves"
        able = successor(assignment, self._nodes)
        if able is not None and able.node in self._targets:
            return promote(assignment, reason, Origin.DRAIN, able)
        target = self._target(assignment)
        text = f"{assignment.slice} goes to {target} because {reason}"
        return Suggestion(Origin.DRAIN, replace(assignment.anew(target), moving=None), text)
