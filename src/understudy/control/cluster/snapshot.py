"""All that one decision reads: how things stand at one tick, what was measured, what was asked for, what is remembered.

`decide` reads nothing else. A snapshot can be written down in a test, and a decision can be repeated from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from understudy.control.cluster.detector import Detector
from understudy.control.schemes.costs import Usage
from understudy.control.schemes.decisions import Decision as Choice
from understudy.control.schemes.history import Error, History
from understudy.control.schemes.objectives import Memory as ControllerMemory
from understudy.control.schemes.objectives import Settings
from understudy.model.config import DEFAULTS, Config
from understudy.model.layout import Layout
from understudy.model.names import SliceId
from understudy.model.recovery import Reaction, Scheme
from understudy.model.snapshot import Assignment, NodeView, Phase


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
class Memory:
    """What one decision hands to the next.

    - `controller`: which scheme every slice was given last, when, and how wide its margin is.
    - `looked_at`: the time of day at which the controller last weighed all slices.
    - `choices`: what it chose then, by slice, for whoever looks.
    - `requests`: switches that people asked for and that are not carried out yet.
    """

    controller: ControllerMemory = field(default_factory=ControllerMemory)
    looked_at: float | None = None
    choices: Mapping[str, Choice] = field(default_factory=lambda: MappingProxyType({}))
    requests: Mapping[SliceId, Scheme] = field(default_factory=lambda: MappingProxyType({}))

    def requested(self, slice_id: SliceId, scheme: Scheme) -> Memory:
        """With one more request; the last one about a slice counts."""
        return replace(self, requests=MappingProxyType({**self.requests, slice_id: scheme}))


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
    """Of operator slices that have sent a status."""
    ended: tuple[Ended, ...] = ()
    """Recoveries that were over since the last decision."""
    memory: Memory = field(default_factory=Memory)
    config: Config = DEFAULTS
    """Limits and times of the run. Those of `detector` and `controller` are there."""

    @property
    def by_name(self) -> dict[str, NodeView]:
        return {node.name: node for node in self.nodes}

    @property
    def assigned(self) -> dict[SliceId, Assignment]:
        return {assignment.slice: assignment for assignment in self.assignments}

    def without(self, lost: set[str]) -> Snapshot:
        """After the loss of some nodes. A check of the topology that one of them may have been making begins again."""
        phase = Phase.GATHERING if lost and self.phase is Phase.CHECKING else self.phase
        return replace(self, phase=phase, nodes=tuple(node for node in self.nodes if node.name not in lost))
