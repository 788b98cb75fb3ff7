"""What a run was asked to do, and the rhythm of its epochs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from understudy.model.config import DEFAULTS, Config, Detectors, ProfileName
from understudy.model.recovery import Reaction, Scheme


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)

    @classmethod
    def trusted(cls, values: dict[str, Any]) -> Self:
        """A model of values that need no check. They must be those of all fields; the dictionary belongs to the model.

        `model_construct` does the same and looks for defaults and aliases first, which takes several times as long.
        """
        made = cls.__new__(cls)
        object.__setattr__(made, "__dict__", values)
        object.__setattr__(made, "__pydantic_fields_set__", _all_fields(cls))
        object.__setattr__(made, "__pydantic_extra__", None)
        object.__setattr__(made, "__pydantic_private__", None)
        return made


@cache
def _all_fields(model: type[Frozen]) -> set[str]:
    """Shared by all models that are trusted: these are frozen, and a copy of one gets a set of its own."""
    return set(model.model_fields)


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


SHORT = {
    "nodes": "cluster.nodes",
    "master": "cluster.master",
    "domains": "cluster.domains",
    "standby_nodes": "cluster.standby_nodes",
    "replace": "cluster.replace",
    "detector": "detector.kind",
    "heartbeat_s": "detector.heartbeat_s",
    "misses": "detector.misses",
    "wake_misses": "detector.misses_to_stand_in",
    "scheme": "recovery.scheme",
    "reaction": "recovery.reaction",
    "budget": "plan.budget",
    "primaries_first": "overload.primaries_first",
    "backlog": "overload.backlog_epochs",
    "profile": "jvm.profile",
    "port": "web.port",
    "allow_faults": "web.allow_faults",
    "token_to_read": "web.token_to_read",
}
"""Short names of configured values: a run can be described by them, and runs stored by earlier versions are."""


class RunSpec(Frozen):
    """What a run was asked to do, kept in the home directory so that it can go on without being asked again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    app: str
    settings: dict[str, str] = Field(default_factory=dict)
    epochs: int | None = None
    for_s: float | None = None
    fast: bool = False
    plan: tuple[str, ...] | None = None
    """Slices that a person planned to have working secondaries; None: nobody did."""
    config: Config = DEFAULTS

    @model_validator(mode="before")
    @classmethod
    def _lengthen(cls, given: Any) -> Any:
        return lengthened(given) if isinstance(given, Mapping) else given

    @classmethod
    def of(cls, id: str, app: str, **options: Any) -> RunSpec:
        """A run described by short names: `RunSpec.of("r", "app.py", nodes=2, fast=True)`."""
        return cls.model_validate({"id": id, "app": app, **options})

    def changed(self, **options: Any) -> RunSpec:
        """The same run with other options. `config` may hold only some sections, and only some keys of them."""
        given = lengthened(options)
        before = self.model_dump()
        sections = {name: before["config"][name] | values for name, values in given.get("config", {}).items()}
        return RunSpec.model_validate({**before, **given, "config": {**before["config"], **sections}})

    def resumed(self, given: Mapping[str, Any]) -> RunSpec:
        """The options with which a stored run goes on: those given anew replace the stored ones, all others hold.

        Settings are replaced one by one. A new end of the run replaces a stored one of the other kind.
        """
        changes = dict(given) | {"settings": {**self.settings, **given.get("settings", {})}}
        if given.get("epochs") is not None:
            changes["for_s"] = None
        elif given.get("for_s") is not None:
            changes["epochs"] = None
        return self.changed(**changes)

    # -- configured values that many ask for

    @property
    def port(self) -> int:
        return self.config.web.port

    @property
    def nodes(self) -> int:
        return self.config.cluster.nodes

    @property
    def master(self) -> str:
        return self.config.cluster.master

    @property
    def domains(self) -> int:
        return self.config.cluster.domains

    @property
    def replace(self) -> bool:
        return self.config.cluster.replace

    @property
    def backlog(self) -> int:
        """Epochs a slice may be ahead of its slowest reader. Without a clock sources are always ahead, so fewer."""
        return self.config.overload.backlog_epochs or (8 if self.fast else 100)

    @property
    def primaries_first(self) -> bool:
        return self.config.overload.primaries_first

    @property
    def heartbeat_s(self) -> float:
        return self.config.detector.heartbeat_s

    @property
    def detector(self) -> Detectors:
        return self.config.detector.kind

    @property
    def scheme(self) -> Scheme | None:
        return self.config.recovery.scheme

    @property
    def reaction(self) -> Reaction | None:
        return self.config.recovery.reaction

    @property
    def profile(self) -> ProfileName:
        return self.config.jvm.profile

    @property
    def allow_faults(self) -> bool:
        return self.config.web.allow_faults

    @property
    def token_to_read(self) -> bool:
        return self.config.web.token_to_read


def lengthened(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options with short names moved to their sections."""
    config = given.get("config", {})
    if isinstance(config, Config):
        config = config.model_dump()
    sections = {name: dict(values) for name, values in config.items()}
    for short in SHORT.keys() & given.keys():
        section, key = SHORT[short].split(".")
        sections.setdefault(section, {})[key] = given[short]
    rest = {name: value for name, value in given.items() if name not in SHORT and name != "config"}
    return rest | ({"config": sections} if sections else {})
