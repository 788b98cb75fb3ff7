"""A node as far as the manager knows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from understudy.control.schemes.overload import throttle
from understudy.model.config import DEFAULTS, OverloadSection
from understudy.model.messages import Heartbeat, Hello
from understudy.model.run import Frozen
from understudy.model.snapshot import NodeView
from understudy.model.view import NodeState

LATELY_S = 10.0


@dataclass
class Connection:
    """`send` is None while the node is not connected; `begun` once it was told what it needs to host replicas."""

    name: str
    heard_at: float
    send: Callable[[Frozen], None] | None = None
    hello: Hello | None = None
    beat: Heartbeat = field(default_factory=lambda: Heartbeat(ready=False))
    begun: bool = False
    draining: bool = False
    leaves_at: float | None = None
    """When its process ends, because it was given notice."""
    left: bool = False
    """It was told that it may end."""
    steady_at: float = -math.inf
    drained: bool = False
    """It was said that nothing is left here."""
    gone: str | None = None
    """The node's last word: why it ends."""
    delays: tuple[tuple[float, float], ...] = ()
    """Heartbeats that came late in the last seconds: when, and how long after the one before."""
    full_at: float | None = None
    """Since its primaries are behind their input."""

    @property
    def domain(self) -> str:
        return self.hello.domain if self.hello else ""

    def tell(self, message: Frozen) -> None:
        if self.send is not None:
            self.send(message)

    def view(self, now: float, running: bool) -> NodeView:
        """For decisions: while the run goes on, only a node that was told what to run is ready."""
        return NodeView(
            name=self.name,
            connected=self.send is not None,
            ready=self.beat.ready and (self.begun or not running),
            silent_s=now - self.heard_at,
            replicas=self.beat.replicas,
            forks=self.beat.forks,
            domain=self.domain,
            draining=self.draining,
            standby=self.hello is not None and self.hello.standby,
            leaves_s=None if self.leaves_at is None else self.leaves_at - now,
            steady_s=now - self.steady_at,
            slow=self.beat.slow,
            jvm_silent_s=self.beat.jvm_silent_s,
            gone=self.gone,
            late_s=self._late_s(now) if self.delays else 0.0,
            full_s=0.0 if self.full_at is None else now - self.full_at,
        )

    def _late_s(self, now: float) -> float:
        return max((delay for at, delay in self.delays if now - at <= LATELY_S), default=0.0)

    def hear(self, beat: Heartbeat, now: float, missed_s: float, limits: OverloadSection = DEFAULTS.overload) -> None:
        """A heartbeat that comes late ends the time in which all of them came in time."""
        delay = max(now - self.heard_at, beat.jvm_silent_s)
        if delay > missed_s or beat.slow:
            self.steady_at = now
        if delay > missed_s:
            self.delays = (*(one for one in self.delays if now - one[0] <= LATELY_S), (now, delay))
        behind = [r.behind for r in beat.replicas if r.primary and r.is_back]
        if not throttle(self.full_at is not None, behind, limits):
            self.full_at = None
        elif self.full_at is None:
            self.full_at = now
        self.heard_at = max(self.heard_at, now)
        self.beat = beat

    def forgive(self, seconds: float, now: float) -> None:
        """The manager was away for so long and could not hear: that is no silence of the node."""
        self.heard_at = max(self.heard_at, min(now, self.heard_at + seconds))

    def state(self, now: float) -> NodeState:
        """For whoever looks at the run."""
        return NodeState(
            name=self.name,
            connected=self.send is not None,
            ready=self.beat.ready,
            pid=self.hello.pid if self.hello else 0,
            domain=self.domain,
            cpu_s=self.beat.cpu_s,
            memory_bytes=self.beat.memory_bytes,
            replicas=self.beat.replicas,
            silent_s=max(0.0, now - self.heard_at),
            jvm_silent_s=self.beat.jvm_silent_s,
            draining=self.draining,
            standby=self.hello is not None and self.hello.standby,
        )
