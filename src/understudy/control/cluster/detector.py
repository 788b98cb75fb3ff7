"""Which nodes are gone, and which only seem to be, from what was last heard of them.

A node is compared with the others. When most of them are late, their machine is full, or the network is, or we are:
then a node is suspected only if it has been silent for clearly longer than the others were lately.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from understudy.model.config import DEFAULTS, DetectorSection
from understudy.model.messages import ReplicaStatus
from understudy.model.snapshot import NodeView


@dataclass(frozen=True)
class Detector:
    """A connection that broke is nearly proof; silence on an open one may be a busy machine, so it gets more time.

    Deciding wrongly is safe: a node that comes back finds its bags published or publishes the same ones. It costs a
    recovery that was not needed.
    """

    limits: DetectorSection = DEFAULTS.detector

    def dead(self, node: NodeView, among: Iterable[NodeView] = (), *, covered: bool = False) -> bool:
        """`covered`: all that the node should do is done elsewhere meanwhile."""
        if node.gone is not None:
            return True
        if not node.connected:
            return node.silent_s > self.limits.misses_disconnected * self.limits.heartbeat_s
        quiet_s = _quiet_s(node)
        longest = self.limits.misses * self.limits.covered_factor * self.limits.heartbeat_s
        usual = longest if covered else self.limits.misses * self.limits.heartbeat_s
        # The others are looked at only where that can make a difference.
        return quiet_s > min(longest, usual) and quiet_s > min(
            longest, max(usual, self.limits.others_factor * self.lateness(node, among))
        )

    @property
    def missed_s(self) -> float:
        """After so long a heartbeat counts as missed."""
        return (1 + self.limits.late_share) * self.limits.heartbeat_s

    def lateness(self, node: NodeView, among: Iterable[NodeView]) -> float:
        """How late the others are or were lately, the median of them; 0 while most come in time."""
        others = [other for other in among if other.name != node.name and other.connected]
        return statistics.median_low([self._late_s(other) for other in others]) if others else 0.0

    def _late_s(self, node: NodeView) -> float:
        return max(node.late_s, _quiet_s(node) if _quiet_s(node) > self.missed_s else 0.0)

    def suspects(self, node: NodeView, among: Iterable[NodeView] = (), patience: int = 1) -> bool:
        """`among` are all nodes; `patience` is how many times longer than usual its silence must be."""
        if not node.connected or node.gone is not None:
            return True
        known = list(among)
        if node.slow and patience == 1:
            others = [other.slow for other in known if other.name != node.name and other.connected]
            if 2 * sum(others) <= len(others):
                return True
        allowed = (self.limits.misses_to_stand_in + self.limits.late_share) * self.limits.heartbeat_s * patience
        quiet_s = _quiet_s(node)
        return quiet_s > allowed and quiet_s > self.limits.others_factor * self.lateness(node, known)

    def trusts(self, node: NodeView, among: Iterable[NodeView] = ()) -> bool:
        """Whether a node that was suspected is well again. Not the same as its not being suspected any more: a starved
        node gets a word out now and then. Where most nodes are late, it need not be better than they are."""
        known = list(among)
        steady = node.steady_s >= self.limits.calm_heartbeats * self.limits.heartbeat_s
        as_others = 0 < node.late_s <= self.limits.others_factor * self.lateness(node, known)
        return not self.suspects(node, known) and (steady or as_others)

    @property
    def usual_s(self) -> float:
        """From a killed node to its being given up."""
        return (self.limits.misses_disconnected + 1) * self.limits.heartbeat_s


def stalls(replica: ReplicaStatus, limits: DetectorSection) -> bool:
    """Whether a replica that worked before has input and makes nothing of it, for longer than a slow batch takes."""
    return replica.steps.done and replica.stalled_s > max(limits.stall_s, limits.stall_batches * replica.batch_s)


def is_stuck(replica: ReplicaStatus, limits: DetectorSection) -> bool:
    """Whether a replica has made nothing of its input for so long that it is not worth waiting for."""
    return replica.stalled_s > max(limits.stuck_s, limits.stuck_batches * replica.batch_s)


def _quiet_s(node: NodeView) -> float:
    """The operators of a node are in its JVM: one that does not move is as bad as a node that says nothing."""
    return max(node.silent_s, node.jvm_silent_s)
