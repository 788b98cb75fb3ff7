"""What a decision asks the runtime to do. Each says why, in one sentence."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.model.messages import Deploy, Failure
from understudy.model.names import SliceId
from understudy.model.snapshot import Assignment


@dataclass(frozen=True)
class CheckTopology:
    node: str
    reason: str


@dataclass(frozen=True)
class LoseNode:
    """The node is considered dead; its slices need another home, and perhaps a new node is started."""

    node: str
    replace: bool
    reason: str


@dataclass(frozen=True)
class Assign:
    assignment: Assignment
    reason: str


@dataclass(frozen=True)
class DeployReplica:
    """Starts a replica, or asks one that is there to become what it should be."""

    node: str
    deploy: Deploy
    reason: str


@dataclass(frozen=True)
class StopReplica:
    node: str
    slice: SliceId
    generation: int
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


Instruction = CheckTopology | LoseNode | Assign | DeployReplica | StopReplica | SetGoal | FinishRun | FailRun
