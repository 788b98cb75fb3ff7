"""How a run looks to people: what the page draws, `understudy status` prints and `/metrics` counts."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from understudy.model.events import Event
from understudy.model.messages import Failure
from understudy.model.run import Frozen
from understudy.model.snapshot import Phase
from understudy.model.view import BranchState, SliceState


class Health(StrEnum):
    """What a slice's state means for whoever waits for its output, from best to worst."""

    HEALTHY = "healthy"
    STARTING = "starting"
    DEGRADED = "degraded"
    CATCHING_UP = "catching_up"
    TENTATIVE = "tentative"
    DOWN = "down"


class SliceLook(SliceState):
    """`why` says in one sentence what made us choose the health."""

    health: Health
    why: str
    rows_in: int = 0
    rows_out: int = 0
    state_bytes: int = 0
    bytes_published: int = 0
    bytes_shipped: int = 0


class ReplicaLook(Frozen):
    slice: str
    primary: bool
    state: str
    epoch: int


class NodeLook(Frozen):
    """`cores` is the CPU it uses now, in cores; `silent_s` the time since its last heartbeat."""

    name: str
    domain: str
    connected: bool
    ready: bool
    draining: bool
    drained: bool
    silent_s: float
    cores: float
    cpu_s: float
    memory_bytes: int
    replicas: tuple[ReplicaLook, ...]


class Sample(Frozen):
    """One moment of the time axis. `latency_s` is the longest of the epochs delivered since the last sample."""

    at: float
    rows_per_s: float
    latency_s: float | None
    epoch: int
    cores: float
    memory_bytes: int


class VertexLook(Frozen):
    """A box of the operator graph; `column` counts hops from the sources."""

    name: str
    kind: str
    parts: tuple[str, ...]
    slices: int
    stateful: bool
    scheme: str
    column: int


class EdgeLook(Frozen):
    upstream: str
    reader: str
    how: str


class Plan(Frozen):
    """The operator graph, and where every slice shall be."""

    app: str
    epoch_s: float
    vertices: tuple[VertexLook, ...]
    edges: tuple[EdgeLook, ...]
    slices: tuple[SliceState, ...] = ()


class Prediction(Frozen):
    """What the controller expects of a slice: seconds to recover under each scheme, and why it chose one."""

    slice: str
    predicted: dict[str, float] = Field(default_factory=dict)
    objective: float | None = None
    reason: str = ""


class PastRecovery(Frozen):
    """A slice that came back. `steps` are the real ones in order, `predicted` what was expected beforehand."""

    number: int
    at: float
    slice: str
    cause: str
    scheme: str
    steps: dict[str, float]
    predicted: dict[str, float]
    total_s: float
    replayed: int


class CostLine(Frozen):
    """One resource: what the work alone takes, what is spent now, and what copying everything would take."""

    resource: str
    unit: str
    none: float
    now: float
    always_active: float


class View(Frozen):
    """Everything that changes while one looks. Computed once per refresh and shared by all who look."""

    at: float
    run: str
    app: str
    phase: Phase
    elapsed_s: float
    epoch: int
    goal: int | None
    delivered: dict[str, int]
    rows_per_s: float
    latency_s: float | None
    nodes: tuple[NodeLook, ...]
    slices: tuple[SliceLook, ...]
    lost: tuple[str, ...]
    branch: BranchState | None = None
    balancing: int = 0
    """Moves that a request for an even load may still begin."""
    costs: tuple[CostLine, ...]
    predictions: tuple[Prediction, ...]
    failure: Failure | None
    allow_faults: bool


class Frame(Frozen):
    """What a page is told: first everything, later only what is new. Lists that are None did not change."""

    kind: str
    view: View
    events: tuple[Event, ...]
    samples: tuple[Sample, ...]
    recoveries: tuple[PastRecovery, ...] | None = None
    plan: Plan | None = None
