"""What nodes and the manager tell each other. Every message says how things stand, so that losing one costs nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from understudy.model.branch import STABLE
from understudy.model.capabilities import ALL, OFF, Capabilities
from understudy.model.names import NodeName, SliceId
from understudy.model.run import Frozen, Rhythm, RunSpec
from understudy.model.spans import Span


class State(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"


class Failure(Frozen):
    """Why a replica or a check stopped. `final`: trying again cannot help. `damaged`: the bags it
    may still need that must be made again, by slice and epoch."""

    what: str
    why: str
    fix: str
    final: bool = False
    damaged: tuple[tuple[SliceId, int], ...] = ()

    def __str__(self) -> str:
        return f"{self.what}\n  why: {self.why}\n  fix: {self.fix}"


class Steps(Frozen):
    """How long the steps of bringing a slice back took, in seconds; `replayed` epochs were there already.

    `deploy` starts the query, `read_checkpoint` brings the state, `wire_receive` waits for input, `wire_send` publishes
    what was held back, `replay` works off what the slice had done before, `first_bag` makes the first new one. `idle`
    is none of these: there was no input yet, and the slice was ready for it. `seamless`: whoever took over was
    publishing already and at the head, so nothing was ever missing.
    """

    deploy: float = 0.0
    read_checkpoint: float = 0.0
    wire_receive: float = 0.0
    wire_send: float = 0.0
    replay: float = 0.0
    first_bag: float = 0.0
    idle: float = 0.0
    replayed: int = 0
    done: bool = False
    done_at: float = 0.0
    seamless: bool = False


BACK_S = 5.0
STEPS = ("deploy", "read_checkpoint", "wire_receive", "wire_send", "replay", "first_bag", "idle")


class DamagedCheckpoint(Frozen):
    """A shipped checkpoint that a replica could not read, and what is wrong with it."""

    epoch: int
    why: str


class ReplicaStatus(Frozen):
    """`primary`: this replica ships and acknowledges. `capabilities` are those that are on by now, `asked` those it was
    last told. `epoch` is the newest it has finished, `synced_to` the newest its state covers.
    `up_s` counts from its start, or from the moment it took over. `shipped_to`, `ship_bytes` and `ship_s` are of the
    last shipment, `ship_failures` have failed in a row since, the last with `ship_error`, `checkpoint_bytes` is what a
    restore of it would read. `first_bags` nobody had published before;
    `read_back` epochs were not worked off, because another replica had shipped their state. `throttled`: it
    should work, but leaves its node to primaries that are behind. `late`: it works, but does not keep up with its
    primary. `behind`: so many epochs of its input are there and not done yet, where it ships. `stalled_s`: for so long
    the query has had input and has finished nothing. `damaged_checkpoints`: those it found, which no longer count."""

    slice: SliceId
    generation: int
    state: State = State.STARTING
    primary: bool = True
    capabilities: Capabilities = OFF
    asked: Capabilities = ALL
    up_s: float = 0.0
    epoch: int = -1
    synced_to: int = -1
    rows_in: int = 0
    rows_out: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    bytes_received: int = 0
    bytes_pulled: int = 0
    bytes_published: int = 0
    bytes_shipped: int = 0
    shipped_to: int = -1
    checkpoint_bytes: int = 0
    ship_bytes: int = 0
    ship_s: float = 0.0
    ship_failures: int = 0
    ship_error: str | None = None
    damaged_checkpoints: tuple[DamagedCheckpoint, ...] = ()
    cpu_s: float = 0.0
    batch_s: float = 0.0
    stalled_s: float = 0.0
    spooled: int = 0
    throttled: bool = False
    late: bool = False
    behind: int = 0
    gaps: tuple[Span, ...] = ()
    forgotten: tuple[Span, ...] = ()
    ended_at: int | None = None
    first_bags: int = 0
    read_back: int = 0
    diverged: int | None = None
    divergences: int = 0
    ship_every: int = 5
    steps: Steps = Steps()
    failure: Failure | None = None
    branch: int = STABLE
    """Of a fork: the tentative branch it works in."""
    missing: tuple[SliceId, ...] = ()
    """Of a fork: the slices it was last told to do without."""

    @property
    def is_back(self) -> bool:
        """Whether a primary has made something new since it was started or took over, or had the time to."""
        return self.primary and (self.steps.done or self.up_s > BACK_S)


class Correction(Frozen):
    """Tentative rows of an epoch beside the stable ones that replaced them: `had` rows are in both."""

    rows: int
    tentative_rows: int
    had: int


class TentativeReceipt(Frozen):
    """A sink wrote an epoch of a branch; `missing` slices are not in it."""

    branch: int
    sink: str
    epoch: int
    rows: int
    at: float
    missing: tuple[str, ...] = ()


class Receipt(Frozen):
    """A sink wrote an epoch to the outside. `fresh` is False if the target held it already. `repeated`: a delivery of
    the same epoch was begun before and interrupted, so the target may have it twice."""

    sink: str
    epoch: int
    rows: int
    digest: str
    at: float
    fresh: bool = True
    repeated: bool = False
    lost: tuple[str, ...] = ()
    """Slices that left a gap on the way of this epoch."""
    corrected: Correction | None = None
    """How the tentative rows that this epoch replaced compare with it, if there were any."""


class Analysis(Frozen):
    """What only Spark can say about an operator: whether it keeps state, and its output schema as JSON."""

    stateful: bool
    output: str


class Hello(Frozen):
    kind: Literal["hello"] = "hello"
    node: NodeName
    token: str
    pid: int
    domain: str = ""
    instance: str = ""
    """Tells two processes of one name apart, also on different machines."""
    standby: bool = False
    """The node hosts only secondaries until a recovery needs it."""


class Refused(Frozen):
    """The manager does not take this node, and never will under this name."""

    kind: Literal["refused"] = "refused"
    failure: Failure


class Heartbeat(Frozen):
    kind: Literal["heartbeat"] = "heartbeat"
    ready: bool
    replicas: tuple[ReplicaStatus, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    forks: tuple[ReplicaStatus, ...] = ()
    tentative: tuple[TentativeReceipt, ...] = ()
    cpu_s: float = 0.0
    memory_bytes: int = 0
    slow: bool = False
    """A known piece of work took too long just now; always False unless that detector is on."""
    jvm_silent_s: float = 0.0
    """Since when the node's JVM has not moved: it is stopped, or collects garbage."""
    leaves_s: float | None = None
    """Until the node ends, because it was given notice."""


class Goodbye(Frozen):
    """The last word of a node that ends because it cannot go on."""

    kind: Literal["goodbye"] = "goodbye"
    why: str


class Checked(Frozen):
    """The answer to `Check`: every operator analysed, or the first mistake."""

    kind: Literal["checked"] = "checked"
    operators: dict[str, Analysis] = Field(default_factory=dict)
    failure: Failure | None = None


class Welcome(Frozen):
    kind: Literal["welcome"] = "welcome"
    run: RunSpec
    home: str


class Check(Frozen):
    kind: Literal["check"] = "check"


class Begin(Frozen):
    """Everything a node needs before it can host replicas; sent once per connection."""

    kind: Literal["begin"] = "begin"
    operators: dict[str, Analysis]
    rhythm: Rhythm
    age_s: float = 0.0
    """How long ago the rhythm's first epoch was due, by the manager's monotonic clock."""


class Deploy(Frozen):
    """What a replica shall be: started if it is not there, changed if it is. Sent again until its status agrees.

    `rewind`: begin before this epoch, because its bag must be made again; damaged bags up to `rewind_to` are taken away
    first. `resume_at`: where a sink goes on.
    `ship_every`: epochs between two shipped checkpoints; 0 ships nothing. A secondary that stands in ships as well, so
    that its primary can read back what it missed; only the primary acknowledges.
    `branch`: a fork for tentative output, which does without the `missing` slices.
    """

    kind: Literal["deploy"] = "deploy"
    slice: SliceId
    generation: int
    primary: bool = True
    capabilities: Capabilities = ALL
    rewind: int | None = None
    rewind_to: int = -1
    resume_at: int = 0
    ship_every: int = 5
    branch: int = STABLE
    missing: tuple[SliceId, ...] = ()

    @property
    def ships(self) -> bool:
        return self.primary or self.ship_every > 0


class Stop(Frozen):
    kind: Literal["stop"] = "stop"
    slice: SliceId
    generation: int
    branch: int = STABLE
    drops: bool = False
    """The whole branch is dropped: its bags may go."""


class Ship(Frozen):
    """A primary shall ship the newest state it has, although no checkpoint is due."""

    kind: Literal["ship"] = "ship"
    slice: SliceId
    generation: int


class Goal(Frozen):
    """The number of epochs after which the run is complete."""

    kind: Literal["goal"] = "goal"
    epochs: int


class Stored(Frozen):
    """The manager has the receipts of this sink up to an epoch, of the stable output or of a branch."""

    kind: Literal["stored"] = "stored"
    sink: str
    epoch: int
    branch: int = STABLE


class Shutdown(Frozen):
    kind: Literal["shutdown"] = "shutdown"


FromNode = Annotated[Hello | Heartbeat | Checked | Goodbye, Field(discriminator="kind")]
ToNode = Annotated[
    Welcome | Check | Begin | Deploy | Stop | Ship | Goal | Stored | Shutdown | Refused, Field(discriminator="kind")
]

from_node: TypeAdapter[Hello | Heartbeat | Checked | Goodbye] = TypeAdapter(FromNode)
to_node: TypeAdapter[Welcome | Check | Begin | Deploy | Stop | Ship | Goal | Stored | Shutdown | Refused] = TypeAdapter(
    ToNode
)
