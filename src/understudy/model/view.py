"""How a run looks from outside: what the API returns, the progress bar shows and tests read."""

from __future__ import annotations

from pydantic import Field

from understudy.model.messages import Failure, ReplicaStatus
from understudy.model.run import Frozen
from understudy.model.snapshot import Phase


class NodeState(Frozen):
    name: str
    connected: bool
    ready: bool
    pid: int
    domain: str
    cpu_s: float
    memory_bytes: int
    replicas: tuple[ReplicaStatus, ...]
    silent_s: float = 0.0
    jvm_silent_s: float = 0.0
    draining: bool = False
    standby: bool = False

    @property
    def epoch(self) -> int:
        """The newest epoch any slice on this node has finished."""
        return max((replica.epoch for replica in self.replicas), default=-1)


class SliceState(Frozen):
    """`scheme` is the one wanted, `protection` the one reached; `lag` counts epochs behind the newest of the run.

    `state` is starting, recovering (it works, but has made nothing new yet), running, failed or lost (with its node).
    """

    slice: str
    kind: str
    scheme: str
    protection: str
    primary: str
    secondary: str | None = None
    standing_in: bool = False
    """The secondary stands in for a primary that is silent or slow."""
    moving: str | None = None
    """The node its primary is moving to."""
    throttled: bool = False
    """The secondary is only deployed, because its node is full."""
    epoch: int = -1
    lag: int = 0
    may_lag: int | None = None
    """So many epochs it may be behind before that counts; None: any number, because the run has no clock."""
    state: str = "starting"
    objective_s: float | None = None
    predicted_s: dict[str, float | None] = Field(default_factory=dict)
    """How long each scheme would take to bring the slice back; None where too little is known."""
    reason: str | None = None
    """What the controller said last."""

    @property
    def late(self) -> bool:
        return self.may_lag is not None and self.lag > self.may_lag


class BranchState(Frozen):
    """The tentative branch that is open. `tentative` and `stable` are the newest epochs of every sink in it, and how
    many it has delivered for good: the branch ends when the second has caught up."""

    number: int
    missing: tuple[str, ...]
    open_s: float
    tentative: dict[str, int]
    stable: dict[str, int]
    fidelity: float | None = None
    completeness: float | None = None

    def __str__(self) -> str:
        without = f"without {', '.join(self.missing)}" if self.missing else "the stable output catches up"
        fidelity = f", predicted fidelity {self.fidelity:.2f}" if self.fidelity is not None and self.missing else ""
        sinks = ", ".join(f"{name} at epoch {e} (stable {self.stable[name] - 1})" for name, e in self.tentative.items())
        return f"tentative output for {self.open_s:.0f} s, {without}{fidelity}{f': {sinks}' if sinks else ''}"


class RunState(Frozen):
    run: str
    app: str
    phase: Phase
    elapsed_s: float
    goal: int | None
    delivered: dict[str, int]
    rows: dict[str, int]
    nodes: tuple[NodeState, ...]
    lost: tuple[str, ...]
    replacements: int
    failure: Failure | None
    slices: tuple[SliceState, ...] = ()
    branch: BranchState | None = None
    grown: int = 0
    """Nodes that the run asked for in its course, because of its work."""
    balancing: int = 0
    """Moves that a request for an even load may still begin."""

    @property
    def epoch(self) -> int:
        """How many epochs every sink has delivered."""
        return min(self.delivered.values(), default=0)

    def epoch_of(self, target: str) -> int:
        """How far a fault's target has come; a domain and the manager are as far as their fastest node."""
        nodes = [node for node in self.nodes if target in (node.name, node.domain)] or self.nodes
        return max((node.epoch for node in nodes), default=-1)
