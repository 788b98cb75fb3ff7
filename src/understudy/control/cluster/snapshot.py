"""All that one decision reads: how things stand at one tick, what was measured, what was asked for, what is remembered.

`decide` reads nothing else. A snapshot can be written down in a test, and a decision can be repeated from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from understudy.control.cluster.detector import Detector
from understudy.control.scaling.sample import Sample
from understudy.control.schemes.costs import Usage
from understudy.control.schemes.decisions import Decision as Choice
from understudy.control.schemes.history import Error, History
from understudy.control.schemes.objectives import Memory as ControllerMemory
from understudy.control.schemes.objectives import Settings
from understudy.model.branch import Branch
from understudy.model.config import DEFAULTS, Config
from understudy.model.layout import Layout
from understudy.model.names import SliceId
from understudy.model.recovery import Reaction, Scheme
from understudy.model.replication import Proposal, ReplicaPlan
from understudy.model.snapshot import Assignment, Move, NodeView, Phase


@dataclass(frozen=True)
class Measured:
    """What was measured of one slice: the steps of its recoveries and its pace, and what its replicas use."""

    history: History
    usage: Usage


@dataclass(frozen=True)
class Ended:
    """A recovery that is over, with its prediction beside what happened. `at` is a time of day."""

    slice: SliceId
    error: Error
    at: float


@dataclass(frozen=True)
class Rebalance:
    """What is remembered about an even load. Times are ages of the run."""

    left: int = 0
    """Steps that a request may still begin; 0: there is no request."""
    begun: int = 0
    """Steps that it has begun."""
    moved_at: Mapping[SliceId, float] = field(default_factory=lambda: MappingProxyType({}))
    """When a slice was last moved for the sake of the load."""
    looked_at: float | None = None
    uneven_since: float | None = None
    """Since when some step has been worthwhile at every look."""


@dataclass(frozen=True)
class Scaling:
    """What is remembered about the number of nodes. Times are ages of the run."""

    history: tuple[Sample, ...] = ()
    wishes: tuple[tuple[float, int], ...] = ()
    """When which number was wanted, as long as it counts."""
    changed_at: float | None = None
    retiring: frozenset[str] = frozenset()
    """Nodes that leave when they are empty."""


@dataclass(frozen=True)
class Memory:
    """What one decision hands to the next.

    - `controller`: which scheme every slice was given last, when, and how wide its margin is.
    - `looked_at`: the time of day at which the controller last weighed all slices.
    - `choices`: what it chose then, by slice, for whoever looks.
    - `requests`: switches that people asked for and that are not carried out yet.
    - `plan`: which slices have working secondaries.
    - `held`: slices that people switched since that plan was adopted; it leaves them alone.
    - `absent`: slices whose primary does not work, and since which age of the run.
    - `moves`: moves that people asked for and that have not begun yet.
    - `scaling`: how busy the nodes were, and which of them are to go.
    - `rebalance`: whether replicas go elsewhere for an even load, and which did lately.
    """

    controller: ControllerMemory = field(default_factory=ControllerMemory)
    looked_at: float | None = None
    choices: Mapping[str, Choice] = field(default_factory=lambda: MappingProxyType({}))
    requests: Mapping[SliceId, Scheme] = field(default_factory=lambda: MappingProxyType({}))
    plan: ReplicaPlan | None = None
    held: frozenset[SliceId] = frozenset()
    absent: Mapping[SliceId, float] = field(default_factory=lambda: MappingProxyType({}))
    moves: Mapping[SliceId, Move] = field(default_factory=lambda: MappingProxyType({}))
    rebalance: Rebalance = field(default_factory=Rebalance)
    scaling: Scaling = field(default_factory=Scaling)

    def requested(self, slice_id: SliceId, scheme: Scheme) -> Memory:
        """With one more request; the last one about a slice counts, and the plan leaves the slice alone."""
        requests = MappingProxyType({**self.requests, slice_id: scheme})
        return replace(self, requests=requests, held=self.held | {slice_id} if self.plan else self.held)

    def asked_to_move(self, slice_id: SliceId, move: Move) -> Memory:
        """With one more move to begin; the last one about a slice counts."""
        return replace(self, moves=MappingProxyType({**self.moves, slice_id: move}))


@dataclass(frozen=True)
class Snapshot:
    phase: Phase
    layout: Layout | None
    nodes: tuple[NodeView, ...]
    assignments: tuple[Assignment, ...]
    wanted_nodes: int
    replace: bool
    delivered: Mapping[str, int]
    """For every sink, the number of epochs delivered without a gap."""
    goal: int | None
    waited_s: float
    """Since the manager started; a run does not wait forever for nodes that never come."""
    detector: Detector
    scheme: Scheme | None = None
    """Protects every operator, whatever it asks for itself."""
    reaction: Reaction | None = None
    """Decides about slow nodes for every operator, whatever it asks for itself."""
    left_s: float | None = None
    """Until a run of limited time is over; negative afterwards."""
    age_s: float = 0.0
    """Since data flows; it goes on counting when the manager is restarted."""
    at: float = 0.0
    """The time of day."""
    throttles: bool = True
    """Secondaries on full nodes are throttled. Off in a run without a clock, where every primary is always behind."""
    controller: Settings = field(default_factory=Settings)
    measured: Mapping[SliceId, Measured] = field(default_factory=lambda: MappingProxyType({}))
    """History and usage of every slice with an objective that was heard from."""
    loads: Mapping[SliceId, float] = field(default_factory=lambda: MappingProxyType({}))
    """The CPU that primaries of operators use, as far as it was measured."""
    busy_cores: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """The cores that every node keeps busy."""
    ended: tuple[Ended, ...] = ()
    """Recoveries that were over since the last decision."""
    memory: Memory = field(default_factory=Memory)
    planned: bool = False
    """The run has a plan for working secondaries, or will have one."""
    proposal: Proposal | None = None
    """A plan that was computed since the last decision."""
    lost_together: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Nodes that were given up with their whole domain and have not come back, with the name of the domain."""
    tentative_s: float | None = None
    """How long a slice may be away until tentative output begins; None without tentative output."""
    tentative_sinks: frozenset[str] = frozenset()
    """Sinks that take tentative output."""
    first_epoch: int = 0
    """With which epoch the run was started or resumed."""
    branch: Branch | None = None
    last_branch: int = 0
    """The number of the last branch that was opened."""
    config: Config = DEFAULTS
    """Limits and times of the run. Those of `detector` and `controller` are there."""

    @cached_property
    def by_name(self) -> Mapping[str, NodeView]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def assigned(self) -> Mapping[SliceId, Assignment]:
        return {assignment.slice: assignment for assignment in self.assignments}

    def remembering(self, memory: Memory) -> Snapshot:
        """With this memory. Most decisions leave it as it is, and then nothing is copied."""
        return self if memory is self.memory else replace(self, memory=memory)

    def without(self, lost: set[str], together: Mapping[str, str] = MappingProxyType({})) -> Snapshot:
        """After the loss of some nodes; `together` are those that went with their domain.

        A check of the topology that one of them may have been making begins again.
        """
        phase = Phase.GATHERING if lost and self.phase is Phase.CHECKING else self.phase
        nodes = tuple(node for node in self.nodes if node.name not in lost)
        return replace(self, phase=phase, nodes=nodes, lost_together={**self.lost_together, **together})
