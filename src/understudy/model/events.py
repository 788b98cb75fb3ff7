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
    kind = "node_lost"
    tone = Tone.BAD
    node: str


class DrainAsked(Happening):
    """`undo`: the node takes slices again."""

    kind = "drain"
    node: str
    undo: bool

    @property
    def text(self) -> str:
        return f"{self.node} takes slices again" if self.undo else f"{self.node} is being drained"


class Drained(Happening):
    kind = "drained"
    node: str

    @property
    def text(self) -> str:
        return f"{self.node} is empty and can be stopped"


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


class SecondaryChanged(Explained):
    """The slice has another secondary, or none: then `node` is None."""

    kind = "secondary"
    slice: SliceId
    node: str | None
    generation: int
    scheme: Scheme


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
    DrainAsked,
    Drained,
    Assigned,
    Promoted,
    SecondaryChanged,
    Recovered,
    Switched,
    Protected,
    ControllerDecided,
    Unprotected,
    Throttled,
    StandingIn,
    StoodIn,
    RolledBack,
    Diverged,
    ShipFailed,
    ShippedAgain,
)
BY_KIND: Mapping[str, type[Happening]] = {record.kind: record for record in RECORDS}
PLACED = (Assigned.kind, Promoted.kind)
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
