"""How things stand at one tick of the manager; decisions read nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from understudy.model.config import DEFAULTS, Config
from understudy.model.layout import Layout
from understudy.model.messages import ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.recovery import Reaction, Scheme


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
    domain: str = ""
    draining: bool = False
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
        wanted = (str(slice_id), generation)
        return next((r for r in self.replicas if (r.slice, r.generation) == wanted), None)


@dataclass(frozen=True)
class Secondary:
    """Where a secondary stands by. Its generation is above its primary's, so that taking over never goes back."""

    node: str
    generation: int


@dataclass(frozen=True)
class Alarms:
    """What waking the secondary of a slice has come to. Times are ages of the run, in seconds."""

    false: int = 0
    """So many times in a row it was woken and made nothing new."""
    at: float = 0.0
    """When the last of these false alarms ended."""
    unproven: tuple[float, ...] = ()
    """When it was woken lately, where that has come to nothing or to nothing yet."""
    first_bags: int = 0
    """How many bags the secondary had been the first to publish when it was woken."""


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
    """The first of its bags that is damaged and has to be made again, and the last one."""
    rewind_to: int = -1
    failures: int = 0
    waits_for: tuple[SliceId, ...] = ()
    """Slices that have to make bags again before this one can read on."""
    spoilt: tuple[str, int] | None = None
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
    """The secondary works beside the primary, whose node is silent or slow; it sleeps again when that is over."""
    alarms: Alarms = Alarms()
    throttle: Throttle = Throttle()

    def alone(self) -> Assignment:
        """Without a secondary; its generation is never given out again."""
        return replace(self, secondary=None, issued=self.next_generation - 1, standing_in=False)

    def anew(self, node: str) -> Assignment:
        """Deployed again, under a new generation. The secondary goes, because its generation must stay above."""
        generation = self.next_generation
        return replace(self, node=node, generation=generation, issued=generation, secondary=None, standing_in=False)

    def rested(self) -> Assignment:
        """Hosted by nobody, and nothing is held against it: so a run that is resumed begins."""
        fresh = replace(self, failures=0, waits_for=(), spoilt=None, spoilings=0, mishaps=0, rests_until=0)
        return replace(fresh.alone(), node="", alarms=Alarms(), throttle=Throttle())

    @property
    def next_generation(self) -> int:
        return max(self.generation, self.issued, self.secondary.generation if self.secondary else 0) + 1


@dataclass(frozen=True)
class Snapshot:
    phase: Phase
    layout: Layout | None
    nodes: tuple[NodeView, ...]
    assignments: tuple[Assignment, ...]
    wanted_nodes: int
    replace: bool
    delivered: dict[str, int]
    """For every sink, the number of epochs delivered without a gap."""
    goal: int | None
    waited_s: float
    """Since the manager started; a run does not wait forever for nodes that never come."""
    scheme: Scheme | None = None
    """Protects every operator, whatever it asks for itself."""
    reaction: Reaction | None = None
    """Answers slow nodes for every operator, whatever it asks for itself."""
    left_s: float | None = None
    """Until a run of limited time is over; negative afterwards."""
    age_s: float = 0.0
    """Since data flows; it goes on counting when the manager is restarted."""
    throttles: bool = True
    """Secondaries give way on full nodes. Not in a run without a clock: there everybody is always behind."""
    config: Config = DEFAULTS
    """Limits and times that decisions go by."""
