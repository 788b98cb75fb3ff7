"""What can happen in a run: one record for every kind of event, with its fields and its sentence.

An `Event` is a record that was written down: it has a number, a time, and the number of the event that caused it. Its
JSON is `{"number", "at", "kind", "text", "fields", "cause"}`. `Event.what` is the typed record again; a kind that this
version does not know is read as `Unknown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

from pydantic import ValidationError

from understudy.model.messages import Steps
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.run import Frozen
from understudy.model.snapshot import Phase


class Tone(StrEnum):
    """What an event means for whoever waits for the output."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"


class Happening(Frozen):
    """Base of all records. `kind` names the record in JSON."""

    kind: ClassVar[str] = ""
    tone: ClassVar[Tone] = Tone.PLAIN

    @property
    def text(self) -> str:
        """The event in one sentence."""
        raise NotImplementedError(type(self))

    def to_fields(self) -> dict[str, Any]:
        """The fields as JSON values, without the sentence."""
        return self.model_dump(mode="json", exclude={"reason"})


class Explained(Happening):
    """A record whose sentence was written by whoever decided it."""

    reason: str

    @property
    def text(self) -> str:
        return self.reason


# -- the run and its manager


class ManagerStarted(Happening):
    kind = "manager"
    phase: Phase

    @property
    def text(self) -> str:
        return f"manager started, {self.phase}"


class Running(Happening):
    """Data flows from here on."""

    kind = "running"
    epoch: int

    @property
    def text(self) -> str:
        return f"data flows from epoch {self.epoch}"


class GoalSet(Explained):
    kind = "goal"
    epochs: int


class Finished(Explained):
    kind = "finished"
    tone = Tone.GOOD


class Failed(Explained):
    kind = "failed"
    tone = Tone.BAD


class FaultInjected(Happening):
    """Somebody caused a fault on purpose, at a time of day."""

    kind = "fault"
    tone = Tone.BAD
    spec: str
    target: str
    at: float

    @property
    def text(self) -> str:
        return f"fault injected: {self.spec}"


# -- nodes


class NodeJoined(Happening):
    kind = "node_joined"
    node: str
    pid: int

    @property
    def text(self) -> str:
        return f"{self.node} joined"


class NodeLost(Explained):
    """A node was given up by itself; `domain` is the one it belongs to, which lives on."""

    kind = "node_lost"
    tone = Tone.BAD
    node: str
    domain: str = ""


class DomainLost(Explained):
    """All nodes of a failure domain were given up at once: one failure, and the cause of all that follows from it."""

    kind = "domain_lost"
    tone = Tone.BAD
    domain: str
    nodes: tuple[str, ...]


class DrainAsked(Happening):
    """`undo`: the node takes slices again. `within_s`: it was given notice and leaves after so long at the latest."""

    kind = "drain"
    node: str
    undo: bool
    within_s: float | None = None

    @property
    def text(self) -> str:
        if self.undo:
            return f"{self.node} takes slices again"
        return f"{self.node} is being drained" + ("" if self.within_s is None else f" within {self.within_s:.0f} s")


class Scaled(Explained):
    """The number of nodes changes: `more` are to be started, or `node` is to go."""

    kind = "scaled"
    more: int = 0
    node: str | None = None


class Drained(Happening):
    kind = "drained"
    node: str

    @property
    def text(self) -> str:
        return f"{self.node} is empty and can be stopped"


class NodeLeft(Explained):
    """A node that was given notice was empty in time and ends."""

    kind = "node_left"
    node: str


# -- where slices are


class Placed(Explained):
    """A slice has a primary on a node. `standing_in`: its secondary was standing in for the one before."""

    slice: SliceId
    node: str
    generation: int
    standing_in: bool = False


class Assigned(Placed):
    """The slice is deployed on the node."""

    kind = "assigned"


class Promoted(Placed):
    """The secondary on the node took over."""

    kind = "promoted"
    tone = Tone.GOOD


class MoveBegan(Explained):
    """A slice is to go from one node to another."""

    kind = "move_began"
    slice: SliceId
    node: str
    primary: str


class Moved(Placed):
    """The slice went from the node `primary` to another, in so many seconds. `legacy`: it was stopped for it."""

    kind = "moved"
    tone = Tone.GOOD
    primary: str
    seconds: float
    legacy: bool


class MoveGivenUp(Explained):
    """The slice stays where it is."""

    kind = "move_given_up"
    slice: SliceId
    node: str
    primary: str


class SecondaryChanged(Explained):
    """The slice has another secondary, or none: then `node` is None."""

    kind = "secondary"
    slice: SliceId
    node: str | None
    generation: int
    scheme: Scheme


class SecondaryMoves(Explained):
    """Another secondary is started on the node, and replaces the one on `before` when it is ready."""

    kind = "secondary_moves"
    slice: SliceId
    node: str
    before: str


class Rebalanced(Explained):
    """Somebody asked for an even load, and nothing worthwhile is left to do; so many replicas moved."""

    kind = "rebalanced"
    tone = Tone.GOOD
    moves: int


class Recovered(Steps, Happening):
    """A slice made something new after a failure, with the steps that took and those that were predicted."""

    kind = "recovered"
    tone = Tone.GOOD
    slice: SliceId
    generation: int
    predicted: dict[str, float] | None = None

    @property
    def text(self) -> str:
        return f"{self.slice} is back"


# -- how slices are protected


class Switched(Happening):
    """A slice shall be protected by another scheme from now on."""

    kind = "switched"
    slice: SliceId
    scheme: Scheme
    before: Scheme

    @property
    def text(self) -> str:
        return f"{self.slice} goes from {self.before} to {self.scheme}"


class Protected(Happening):
    """Another scheme than before protects a slice now; `seconds` since it was asked for, if it was."""

    kind = "protection"
    slice: SliceId
    scheme: Scheme
    seconds: float | None = None

    @property
    def text(self) -> str:
        took = f" after {self.seconds:.2f} s" if self.seconds is not None else ""
        return f"{self.slice} is protected by {self.scheme.replace('_', ' ')}{took}"


class ControllerDecided(Happening):
    """The controller chose a scheme and an interval, by these figures."""

    kind = "decision"
    slice: SliceId
    scheme: Scheme
    ship_every: int
    why: str
    changed: bool
    predicted_s: dict[str, float | None]
    objective_s: float
    margin: float
    cost: float
    cost_ratio: float
    sentence: str

    @property
    def text(self) -> str:
        return self.sentence


class PlanAdopted(Explained):
    """Other slices than before are to have working secondaries. Fidelities are predicted, by the same rates."""

    kind = "plan"
    budget: int
    slices: tuple[SliceId, ...]
    added: tuple[SliceId, ...]
    removed: tuple[SliceId, ...]
    fidelity_before: float
    fidelity_after: float
    algorithm: str
    status: str


class Unprotected(Explained):
    """A secondary failed, or may not work beside its primary any more."""

    kind = "unprotected"
    tone = Tone.BAD
    slice: SliceId
    node: str
    generation: int


class Throttled(Explained):
    """The secondary on a full node does less (`on`), or goes on again."""

    kind = "throttled"
    slice: SliceId
    node: str | None
    generation: int
    on: bool


# -- reactions to slow nodes


class StandingIn(Explained):
    """The secondary on a node works beside the primary, whose node is silent or slow."""

    kind = "standing_in"
    slice: SliceId
    node: str
    primary: str


class StoodIn(Steps, Happening):
    """A secondary that stands in made the first bag that nobody else had made."""

    kind = "stood_in"
    tone = Tone.GOOD
    slice: SliceId

    @property
    def text(self) -> str:
        return f"{self.slice} goes on with its secondary"


class RolledBack(Explained):
    """The primary is well again and its secondary no longer stands in; what that has cost, if it is known."""

    kind = "rolled_back"
    tone = Tone.GOOD
    slice: SliceId
    node: str
    primary: str
    stood_in_s: float | None = None
    false_alarm: bool | None = None
    cpu_s: float | None = None
    bytes_received: float | None = None
    bytes_published: float | None = None
    bytes_shipped: float | None = None


# -- what replicas report


class Diverged(Happening):
    kind = "diverged"
    tone = Tone.BAD
    slice: SliceId
    epoch: int

    @property
    def text(self) -> str:
        return (
            f"{self.slice} is not deterministic: its replay of epoch {self.epoch} differs from what was published; "
            "avoid rand(), uuid() and the current time"
        )


class ShipFailed(Happening):
    kind = "ship_failed"
    tone = Tone.BAD
    slice: SliceId
    generation: int
    error: str | None

    @property
    def text(self) -> str:
        return f"the checkpoint of {self.slice} could not be shipped: {self.error}"


class ShippedAgain(Happening):
    kind = "shipped_again"
    tone = Tone.GOOD
    slice: SliceId
    generation: int
    error: str | None = None

    @property
    def text(self) -> str:
        return f"the checkpoint of {self.slice} is shipped again"


class CheckpointDamaged(Happening):
    """A replica could not read a shipped checkpoint. From then on its slice is restored from others."""

    kind = "checkpoint_damaged"
    tone = Tone.BAD
    slice: SliceId
    generation: int
    epoch: int
    error: str

    @property
    def text(self) -> str:
        return f"the checkpoint of {self.slice} after epoch {self.epoch} is damaged and no longer counts: {self.error}"


# -- tentative output


class BranchChanged(Explained):
    """Tentative output begins, goes on without other slices, or ends."""

    kind = "branch"
    branch: int
    missing: tuple[SliceId, ...]
    opened: bool = False
    dropped: bool = False
    fidelity: float | None = None
    """The predicted output fidelity without the missing slices, where that can be said."""
    completeness: float | None = None
    """The predicted internal completeness."""
    away_s: float | None = None
    """When it was opened: for how long the first of the missing slices had been away."""


class TentativeDelivered(Happening):
    """A sink wrote an epoch without the missing slices, at a time of day."""

    kind = "tentative"
    branch: int
    sink: str
    epoch: int
    rows: int
    at: float
    missing: tuple[str, ...]

    @property
    def text(self) -> str:
        without = f" without {', '.join(self.missing)}" if self.missing else ""
        return f"{self.sink} wrote epoch {self.epoch} tentatively{without}, {self.rows} rows"


class Corrected(Happening):
    """The stable epoch has replaced a tentative one: `had` of its `rows` were among the `tentative_rows`."""

    kind = "corrected"
    tone = Tone.GOOD
    sink: str
    epoch: int
    at: float
    rows: int
    tentative_rows: int
    had: int

    @property
    def text(self) -> str:
        return f"{self.sink} corrected epoch {self.epoch}: {self.had} of {self.rows} rows were there already"


class Unknown(Explained):
    """An event of a kind, or with fields, that this version does not know."""

    kind = "unknown"


RECORDS: tuple[type[Happening], ...] = (
    ManagerStarted,
    Running,
    GoalSet,
    Finished,
    Failed,
    FaultInjected,
    NodeJoined,
    NodeLost,
    DomainLost,
    DrainAsked,
    Scaled,
    Drained,
    NodeLeft,
    Assigned,
    Promoted,
    MoveBegan,
    Moved,
    MoveGivenUp,
    SecondaryChanged,
    SecondaryMoves,
    Rebalanced,
    Recovered,
    Switched,
    Protected,
    ControllerDecided,
    PlanAdopted,
    Unprotected,
    Throttled,
    StandingIn,
    StoodIn,
    RolledBack,
    Diverged,
    ShipFailed,
    ShippedAgain,
    CheckpointDamaged,
    BranchChanged,
    TentativeDelivered,
    Corrected,
)
BY_KIND: Mapping[str, type[Happening]] = {record.kind: record for record in RECORDS}
PLACED = (Assigned.kind, Promoted.kind, Moved.kind)
"""Kinds that tell which node a slice has now."""
OVER = frozenset({Finished.kind, Failed.kind})
"""The last event of a run is one of these."""
COUNT = ""
"""In the totals of a kind: how many there were."""
SUMMED: Mapping[str, tuple[str, ...]] = {
    Promoted.kind: ("standing_in",),
    RolledBack.kind: ("stood_in_s", "false_alarm", "cpu_s", "bytes_received", "bytes_published", "bytes_shipped"),
}
"""Fields whose sums over the whole run are kept, by kind."""


class Event(Frozen):
    """Something that happened, as it was written down; `cause` is the number of the event that led to it."""

    number: int
    at: float
    kind: str
    text: str
    fields: dict[str, Any]
    cause: int | None = None

    @cached_property
    def what(self) -> Happening:
        """The typed record."""
        return read(self.kind, self.text, self.fields)

    @property
    def tone(self) -> Tone:
        record = BY_KIND.get(self.kind)
        return Tone.PLAIN if record is None else record.tone


def read(kind: str, text: str, fields: Mapping[str, Any]) -> Happening:
    """The record that was written down; `Unknown` where this version cannot read it."""
    record = BY_KIND.get(kind)
    if record is not None:
        try:
            return record.model_validate({**fields, "reason": text})
        except ValidationError:
            pass
    return Unknown(reason=text)
