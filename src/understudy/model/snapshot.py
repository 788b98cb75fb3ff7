"""The cluster as decisions see it: the phase of the run, nodes, and who hosts which slice.

`control/cluster/snapshot.py` puts them together for one decision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from understudy.model.messages import ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme


class Phase(StrEnum):
    """What the run means for whoever looks: data flows only while it is running."""

    GATHERING = "gathering"
    CHECKING = "checking"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"

    @property
    def over(self) -> bool:
        return self in (Phase.FINISHED, Phase.FAILED)


@dataclass(frozen=True)
class NodeView:
    """A node as the manager sees it. `silent_s` counts from its last heartbeat, or from the manager's own start."""

    name: str
    connected: bool
    ready: bool
    silent_s: float
    replicas: tuple[ReplicaStatus, ...] = ()
    forks: tuple[ReplicaStatus, ...] = ()
    """Replicas in a tentative branch."""
    domain: str = ""
    draining: bool = False
    standby: bool = False
    """It hosts only secondaries until a recovery needs it."""
    leaves_s: float | None = None
    """Until its process ends, because it was given notice; None: it stays."""
    steady_s: float = math.inf
    """Since its heartbeats have come in time."""
    slow: bool = False
    """It says so itself: a known piece of work took too long."""
    jvm_silent_s: float = 0.0
    """For so long its JVM had not moved when the last heartbeat was sent."""
    gone: str | None = None
    """Its last word: why it ends."""
    late_s: float = 0.0
    """The longest time between two of its heartbeats lately, if that was too long; 0 if all came in time."""
    full_s: float = 0.0
    """Since its primaries have fallen behind their input; 0 while they keep up."""

    def hosting(self, slice_id: SliceId, generation: int) -> ReplicaStatus | None:
        """The replica of a slice under a generation, if this node was heard to have it."""
        for replica in self.replicas:
            if replica.generation == generation and replica.slice == slice_id:
                return replica
        return None

    def forking(self, branch: int, slice_id: SliceId, generation: int) -> ReplicaStatus | None:
        """The fork of a slice in a branch, if this node was heard to have it."""
        wanted = (branch, slice_id, generation)
        return next((r for r in self.forks if (r.branch, r.slice, r.generation) == wanted), None)


@dataclass(frozen=True)
class Secondary:
    """Where a secondary stands by. Its generation is above its primary's, so that taking over never goes back."""

    node: str
    generation: int


@dataclass(frozen=True)
class Move:
    """A replica of a slice is to be on another node. `since` is the age of the run when that was decided.

    `generation` is that of the mover, the replica on the target that will take over; 0: there is none.
    """

    node: str
    since: float = 0.0
    generation: int = 0
    primary: bool = True
    """Whether the primary moves, or the secondary."""
    legacy: bool = False
    """Stop here, ship, start there: no second replica works meanwhile."""
    paused_at: float | None = None
    """The age of the run at which the primary was told to stop and to ship what it has."""
    hasty: bool = False
    """Its node is about to go, so that the slice's next secondary is not waited for."""


@dataclass(frozen=True)
class Alarms:
    """What standing in has come to. Times are ages of the run, in seconds."""

    false: int = 0
    """False alarms in a row: it stood in and made nothing new."""
    at: float = 0.0
    """When the last of these false alarms ended."""
    unproven: tuple[float, ...] = ()
    """When it began to stand in lately, where that has made nothing new or nothing yet."""
    first_bags: int = 0
    """How many bags the secondary had been the first to publish when it began to stand in."""


@dataclass(frozen=True)
class Throttle:
    """Whether a secondary does without its part of a full node. `at` is the age of the run at the last change."""

    on: bool = False
    at: float = 0.0
    times: int = 0
    """So many times in a row it was throttled again soon after it had been let go on."""


@dataclass(frozen=True)
class Assignment:
    """Who hosts a slice, and how it is protected. Every new deployment has a generation of its own."""

    slice: SliceId
    node: str
    generation: int
    rewind: int | None = None
    """The first of its bags that is damaged and has to be made again."""
    rewind_to: int = -1
    """The last of its bags that has to be made again; -1 if there is none."""
    failures: int = 0
    waits_for: tuple[SliceId, ...] = ()
    """Slices that have to make bags again before this one can read on."""
    spoilt: tuple[SliceId, int] | None = None
    """The first damaged bag it reported last, and how often in a row it was this one."""
    spoilings: int = 0
    scheme: Scheme = Scheme.PASSIVE_REPLICATION
    ship_every: int | None = None
    """Epochs between two shipped checkpoints, where the controller chose; otherwise it follows the scheme."""
    secondary: Secondary | None = None
    issued: int = 0
    """The newest generation given out, also to secondaries that are gone."""
    mishaps: int = 0
    """Secondaries in a row that failed before they were what they should be."""
    rests_until: int = 0
    """After too many of them: the epoch of the primary from which another one is tried."""
    passive: bool = False
    """Two replicas disagreed once, so from then on only one may work."""
    standing_in: bool = False
    """The secondary works beside the primary, whose node is silent or slow; it is rolled back when that is over."""
    alarms: Alarms = Alarms()
    throttle: Throttle = Throttle()
    moving: Move | None = None
    """One of its replicas is on its way to another node."""

    def alone(self) -> Assignment:
        """Without a secondary; its generation is never given out again."""
        return replace(self, secondary=None, issued=self.next_generation - 1, standing_in=False)

    def anew(self, node: str) -> Assignment:
        """Deployed again, under a new generation. The secondary goes, because its generation must stay above."""
        generation = self.next_generation
        placed = replace(self, node=node, generation=generation, issued=generation, secondary=None, standing_in=False)
        return placed.without_mover()

    def without_mover(self) -> Assignment:
        """A move begins again: its replica on the target is gone, and the generation of it is never given out again."""
        if self.moving is None:
            return self
        issued = self.next_generation - 1
        return replace(self, moving=replace(self.moving, generation=0, paused_at=None), issued=issued)

    def rested(self) -> Assignment:
        """Hosted by nobody, and nothing is held against it: so a run that is resumed begins."""
        fresh = replace(self, failures=0, waits_for=(), spoilt=None, spoilings=0, mishaps=0, rests_until=0)
        return replace(fresh.without_mover().alone(), node="", alarms=Alarms(), throttle=Throttle(), moving=None)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The nodes that have a replica, or will have one."""
        others = (self.secondary.node if self.secondary else "", self.moving.node if self.moving else "")
        return (self.node, *(name for name in others if name))

    @property
    def next_generation(self) -> int:
        secondary = self.secondary.generation if self.secondary else 0
        return max(self.generation, self.issued, secondary, self.moving.generation if self.moving else 0) + 1
