"""What a decision asks the runtime to do, and the decision itself. Every instruction gives its reason in one sentence.

Instructions are safe to repeat, and a decision may be interrupted after any of them: whatever was not carried out is
decided again at the next tick.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from understudy.control.cluster.snapshot import Memory
from understudy.control.cluster.suggestions import Origin, Suggestion
from understudy.control.schemes.decisions import Decision as Choice
from understudy.model.branch import STABLE, Branch
from understudy.model.messages import Deploy, Failure
from understudy.model.names import SliceId
from understudy.model.replication import Proposal
from understudy.model.snapshot import Assignment


@dataclass(frozen=True)
class CheckTopology:
    node: str
    reason: str


@dataclass(frozen=True)
class LoseNode:
    """The node counts as dead; its slices need another node. `replace`: a new node is to be started for it."""

    node: str
    replace: bool
    reason: str

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.node,)


@dataclass(frozen=True)
class LoseDomain:
    """All nodes of a domain count as dead: one failure. `replace`: a new node is to be started for each."""

    domain: str
    nodes: tuple[str, ...]
    replace: bool
    reason: str


@dataclass(frozen=True)
class AdoptPlan:
    """From now on this plan says which slices have working secondaries; `proposal` has the figures behind it."""

    proposal: Proposal
    reason: str


@dataclass(frozen=True)
class Assign:
    """Remember who hosts a slice and how it is protected. The deployments that follow are instructions of their own."""

    assignment: Assignment
    reason: str
    origin: Origin = Origin.RECOVERY
    choice: Choice | None = None


@dataclass(frozen=True)
class DeployReplica:
    """Starts a replica, or tells one that is there what it should be."""

    node: str
    deploy: Deploy
    reason: str


@dataclass(frozen=True)
class StopReplica:
    node: str
    slice: SliceId
    generation: int
    reason: str
    branch: int = STABLE
    drops: bool = False
    """The whole branch is dropped: its bags may go."""


@dataclass(frozen=True)
class ShipCheckpoint:
    """A primary ships the newest state it has, although no checkpoint is due."""

    node: str
    slice: SliceId
    generation: int
    reason: str


@dataclass(frozen=True)
class SetBranch:
    """Remember the tentative branch as it is from now on; None drops it. Deployments of forks are instructions of
    their own."""

    branch: Branch | None
    reason: str
    away_s: float | None = None
    """When it is opened: for how long the first of the missing slices has been away."""


@dataclass(frozen=True)
class ReleaseNode:
    """A node that was given notice hosts nothing any more and may end."""

    node: str
    reason: str


@dataclass(frozen=True)
class GrowCluster:
    """So many nodes more are wanted."""

    nodes: int
    reason: str


@dataclass(frozen=True)
class RetireNode:
    """A node is one too many and is drained; `last`: it is empty by now and may leave."""

    node: str
    reason: str
    last: bool = False


@dataclass(frozen=True)
class EndRebalance:
    """What somebody asked for is done: the load is even, after so many moves."""

    moves: int
    reason: str


@dataclass(frozen=True)
class SetGoal:
    epochs: int
    reason: str


@dataclass(frozen=True)
class FinishRun:
    reason: str


@dataclass(frozen=True)
class FailRun:
    failure: Failure
    reason: str


Instruction = (
    CheckTopology
    | LoseNode
    | LoseDomain
    | AdoptPlan
    | Assign
    | DeployReplica
    | StopReplica
    | ShipCheckpoint
    | SetBranch
    | ReleaseNode
    | EndRebalance
    | GrowCluster
    | RetireNode
    | SetGoal
    | FinishRun
    | FailRun
)


@dataclass(frozen=True)
class Decision:
    """The instructions of one tick in the order in which they are carried out, and what the next decision needs."""

    instructions: tuple[Instruction, ...] = ()
    memory: Memory = field(default_factory=Memory)
    declined: tuple[Suggestion, ...] = ()
    """Suggestions that had to wait for another one about the same slice."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """One sentence for every instruction, then one for every suggestion that was declined."""
        waiting = (f"not now: {suggestion.reason}" for suggestion in self.declined)
        return (*(instruction.reason for instruction in self.instructions), *waiting)
