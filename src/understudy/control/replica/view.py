"""What a decision may look at. The shell computes a field when a rule first reads it, once per decision."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from understudy.model.capabilities import OFF, Capabilities
from understudy.model.names import SliceId


class Trial(StrEnum):
    """The run on an empty epoch."""

    NONE = "none"
    RUNNING = "running"
    DONE = "done"


class Replacement(StrEnum):
    """A query that is being prepared beside the one in place."""

    NONE = "none"
    LOADING = "loading"
    """It runs the last batch of its checkpoint again."""
    READY = "ready"


class Shipping(StrEnum):
    OFF = "off"
    ON = "on"
    STOPPING = "stopping"
    """It was told to stop and finishes the step it is in."""


class QueryView(Protocol):
    """A replica of an operator slice. `next_epoch` is the one to be announced next, `done` the newest that is done.

    One property for every question a rule may ask: a rule that is not reached costs no look at a disk.
    """

    @property
    def on(self) -> Capabilities:
        """Capabilities that are reached."""
        ...

    @property
    def next_epoch(self) -> int: ...

    @property
    def done(self) -> int: ...

    @property
    def drained(self) -> bool:
        """Whether everything announced is done and Spark has committed it."""
        ...

    # -- the query

    @property
    def has_query(self) -> bool: ...

    @property
    def arrived(self) -> bool:
        """Whether the query has come to its gate; before, nobody else may touch its directory."""
        ...

    @property
    def loaded(self) -> bool:
        """Whether the state of the query is in memory."""
        ...

    @property
    def load_tried_at(self) -> int | None:
        """The epoch the state covered when loading it was tried last."""
        ...

    @property
    def unfit(self) -> bool:
        """Whether the query could not follow, so that another one must take its place."""
        ...

    @property
    def trial(self) -> Trial: ...

    @property
    def exercised(self) -> bool: ...

    @property
    def replacement(self) -> Replacement: ...

    # -- its history as a replica

    @property
    def stood_by(self) -> bool:
        """Whether it has waited behind its gate since it last caught up."""
        ...

    @property
    def took_over(self) -> bool: ...

    @property
    def gap_left(self) -> bool: ...

    @property
    def shipping(self) -> Shipping: ...

    @property
    def fruitless(self) -> int | None:
        """The shipped epoch that could not be brought here; only a newer one is worth another try."""
        ...

    # -- what others have done

    @property
    def newest_published(self) -> int:
        """The newest bag of this slice, whoever made it."""
        ...

    @property
    def newest_shipped(self) -> int:
        """The newest epoch of this slice whose state was shipped."""
        ...

    @property
    def goal_reached(self) -> bool: ...

    @property
    def crowded(self) -> bool:
        """Whether primaries of this node are behind."""
        ...

    @property
    def input_there(self) -> bool:
        """Whether all upstream slices have published the next epoch."""
        ...

    @property
    def given_away(self) -> SliceId | None:
        """An upstream slice whose next epoch this slice has acknowledged, so that it may be trimmed."""
        ...

    @property
    def has_room(self) -> bool:
        """Whether the readers of this slice are near enough to go on."""
        ...

    @property
    def can_fetch(self) -> bool:
        """Whether there is published input that was not fetched ahead yet."""
        ...

    @property
    def spooled(self) -> int:
        """Bags that are held back."""
        ...

    # -- what the operator is

    @property
    def reloads(self) -> bool:
        """Whether running the last batch again loads the state that was shipped."""
        ...

    @property
    def replays(self) -> bool:
        """Whether its guarantee replays what was missed."""
        ...

    @property
    def refresh_every(self) -> int: ...


@dataclass(frozen=True)
class Facts:
    """A view as plain values, for tests and for showing what a rule depends on."""

    on: Capabilities = OFF
    next_epoch: int = 0
    done: int = -1
    drained: bool = True
    has_query: bool = False
    arrived: bool = True
    loaded: bool = False
    load_tried_at: int | None = None
    unfit: bool = False
    trial: Trial = Trial.NONE
    exercised: bool = False
    replacement: Replacement = Replacement.NONE
    stood_by: bool = False
    took_over: bool = False
    gap_left: bool = False
    shipping: Shipping = Shipping.OFF
    fruitless: int | None = None
    newest_published: int = -1
    newest_shipped: int = -1
    goal_reached: bool = False
    crowded: bool = False
    input_there: bool = False
    given_away: SliceId | None = None
    has_room: bool = True
    can_fetch: bool = False
    spooled: int = 0
    reloads: bool = True
    replays: bool = True
    refresh_every: int = 1
