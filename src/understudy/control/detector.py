"""Which nodes are gone, and which only seem to be, from what was last heard of them."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.model.messages import ReplicaStatus
from understudy.model.snapshot import NodeView

LATE = 0.5
"""A heartbeat counts as missed when it is late by this much of its interval: no network is perfectly regular."""
CALM = 5
"""Heartbeats in a row that have to come in time before a node is believed to be well again."""
PATIENT = 5
"""So many times longer a silent node is waited for while others do its work."""

STALLS_S, STALLS_BATCHES = 10.0, 10.0
"""A replica is suspected if one batch takes this long, and so many times as long as the one before."""
STUCK_S, STUCK_BATCHES = 180.0, 30.0
"""It counts as failed after this long. Generous: a batch that is only slow would be begun again from the start."""


@dataclass(frozen=True)
class Detector:
    """A connection that broke is nearly proof; silence on an open one may be a busy machine, so it gets more time.

    Deciding wrongly is safe: a node that comes back finds its bags published or publishes the same ones. It costs a
    recovery that was not needed.
    """

    heartbeat_s: float
    misses: int
    misses_disconnected: int = 3
    wake: int = 1
    """Heartbeats missed in a row until a node is suspected."""

    def dead(self, node: NodeView, *, covered: bool = False) -> bool:
        """`covered`: all that the node should do is done elsewhere meanwhile."""
        if node.gone is not None:
            return True
        misses = self.misses * PATIENT if covered else self.misses
        if not node.connected:
            return node.silent_s > self.misses_disconnected * self.heartbeat_s
        return _quiet_s(node) > misses * self.heartbeat_s

    @property
    def missed_s(self) -> float:
        """After so long a heartbeat counts as missed."""
        return (1 + LATE) * self.heartbeat_s

    def suspects(self, node: NodeView) -> bool:
        silent = _quiet_s(node) > (self.wake + LATE) * self.heartbeat_s
        return not node.connected or node.slow or silent or node.gone is not None

    def trusts(self, node: NodeView) -> bool:
        """Whether a node that was suspected is well again. Not the same as its not being suspected any more: a starved
        node gets a word out now and then."""
        return not self.suspects(node) and node.steady_s >= CALM * self.heartbeat_s

    @property
    def usual_s(self) -> float:
        """From a killed node to its being given up."""
        return (self.misses_disconnected + 1) * self.heartbeat_s


def stalls(replica: ReplicaStatus) -> bool:
    """Whether a replica that worked before has input and makes nothing of it, for longer than a slow batch takes."""
    return replica.steps.done and replica.stalled_s > max(STALLS_S, STALLS_BATCHES * replica.batch_s)


def is_stuck(replica: ReplicaStatus) -> bool:
    """Whether a replica has made nothing of its input for so long that it is not worth waiting for."""
    return replica.stalled_s > max(STUCK_S, STUCK_BATCHES * replica.batch_s)


def _quiet_s(node: NodeView) -> float:
    """The operators of a node are in its JVM: one that does not move is as bad as a node that says nothing."""
    return max(node.silent_s, node.jvm_silent_s)
