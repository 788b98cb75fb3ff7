"""Which nodes are gone, from what was last heard of them."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.model.snapshot import NodeView


@dataclass(frozen=True)
class Detector:
    """A connection that broke is nearly proof; silence on an open one may be a busy machine, so it gets more time.

    Deciding wrongly is safe: a node that comes back finds its bags published or publishes the same ones. It costs a
    recovery that was not needed.
    """

    heartbeat_s: float
    misses: int
    misses_disconnected: int = 3

    def dead(self, node: NodeView) -> bool:
        allowed = self.misses if node.connected else self.misses_disconnected
        return node.silent_s > allowed * self.heartbeat_s

    @property
    def usual_s(self) -> float:
        """From a killed node to its being given up."""
        return (self.misses_disconnected + 1) * self.heartbeat_s
