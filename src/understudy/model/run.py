"""What a run was asked to do, and the rhythm of its epochs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Rhythm(Frozen):
    """When epochs are due: epoch `epoch` at `time`, the others before and after it at a steady pace.

    A resumed run starts a new rhythm where the old one ended, so that it does not race through the pause. A `fast` run
    has none: epochs are cut as quickly as they are read.

    `time` belongs to the clock of whoever holds the rhythm. The manager stores it in the time of day, for reports. A
    node moves it to its monotonic clock, because the time of day may step.
    """

    epoch: int
    time: float
    epoch_s: float
    fast: bool = False

    def due(self, epoch: int) -> float:
        return self.time if self.fast else self.time + (epoch - self.epoch) * self.epoch_s

    def anchored(self, now: float, age_s: float) -> Rhythm:
        """The same rhythm on another clock, which shows `now`; its first epoch was due `age_s` ago."""
        return self.model_copy(update={"time": now - age_s})


class Detectors(StrEnum):
    """Who is slow: by missed heartbeats alone, or also by the time a node needs for a known piece of work."""

    HEARTBEAT = "heartbeat"
    BENCHMARK = "benchmark"


class RunSpec(Frozen):
    """The options of a run, kept in the home directory so that it can be resumed without them."""

    id: str
    app: str
    port: int = 8787
    """The manager's; 0 picks a free one."""
    settings: dict[str, str] = Field(default_factory=dict)
    nodes: int = 3
    master: str = "local[1]"
    epochs: int | None = None
    for_s: float | None = None
    fast: bool = False
    replace: bool = False
    backlog: int = 100
    heartbeat_s: float = 0.1
    misses: int = 30
    """Heartbeats missed in a row until a node that is still connected counts as dead."""
    wake_misses: int = 1
    """Heartbeats missed in a row until a speculative secondary stands in."""
    reaction: str | None = None
    """Decides about slow nodes for every operator, whatever it asks for itself."""
    detector: str = Detectors.HEARTBEAT
    primaries_first: bool = True
    """Under overload secondaries are throttled; False is there to measure what that is worth."""
    profile: str = "quick"
    scheme: str | None = None
    """Protects every operator, whatever it asks for itself."""
    domains: int = 0
    """Nodes are spread over so many failure domains; 0 means that each stands alone."""
    allow_faults: bool = False
    """Nodes may be killed and frozen through the manager's port."""
    token_to_read: bool = False
    """Reading through the manager's port needs the token too, also from this machine."""

    def resumed(self, given: Mapping[str, Any]) -> RunSpec:
        """The options with which a stored run goes on: those given anew replace the stored ones, all others hold.

        Settings are replaced one by one. A new end of the run replaces a stored one of the other kind.
        """
        changes = dict(given) | {"settings": {**self.settings, **given.get("settings", {})}}
        if given.get("epochs") is not None:
            changes["for_s"] = None
        elif given.get("for_s") is not None:
            changes["epochs"] = None
        return self.model_copy(update=changes)
