"""What a user promises about an operator's recovery."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from understudy.errors import InvalidInput
from understudy.model.durations import seconds


class Scheme(StrEnum):
    """How a slice is protected. `none` exists for measurement: nothing is kept, and a killed node takes state along."""

    NONE = "none"
    PASSIVE_REPLICATION = "passive_replication"
    DEPLOYED = "deployed"
    PASSIVE_STANDBY_COLD = "passive_standby_cold"
    PASSIVE_STANDBY_HOT = "passive_standby_hot"
    ACTIVE_STANDBY = "active_standby"
    ACTIVE_REPLICATION = "active_replication"


ACTIVE = frozenset({Scheme.ACTIVE_STANDBY, Scheme.ACTIVE_REPLICATION})
"""Both copies work, so both must come to the same result."""


class Guarantee(StrEnum):
    """What a reader may rely on after a failure.

    `precise`: nothing is lost, nothing comes twice, every replay equals what was published. `rollback`: nothing is
    lost; a replay may differ from what was published before, which counts. `gap`: the state goes back to the last
    checkpoint, nothing is replayed, missed epochs are published as marked gaps. `amnesia`: the state is lost as well,
    and nothing is shipped.
    """

    PRECISE = "precise"
    ROLLBACK = "rollback"
    GAP = "gap"
    AMNESIA = "amnesia"

    @property
    def replays(self) -> bool:
        return self in (Guarantee.PRECISE, Guarantee.ROLLBACK)


class Reaction(StrEnum):
    """What a missed heartbeat means. `conservative`: nothing, until the node counts as dead. `speculative`: the
    secondary stands in at once and works beside the primary, until that one is heard of again or is given up."""

    CONSERVATIVE = "conservative"
    SPECULATIVE = "speculative"


SHIP_EVERY = {Scheme.PASSIVE_STANDBY_HOT: 1, Scheme.PASSIVE_STANDBY_COLD: 1, Scheme.DEPLOYED: 2}
"""A standby lives on what is shipped: every epoch less to replay is an epoch sooner back."""
SHIP_SELDOM = 5


@dataclass(frozen=True)
class Recovery:
    """How one operator is protected.

    `ship_every` is the number of epochs between two shipped checkpoints: a smaller number means less to replay after a
    failure and more to copy before it. Left out, it follows the scheme. `refresh_every` is the number of epochs after
    which a hot standby brings its loaded state up to what was shipped. `objective` is the time after a failure within
    which every slice must be back ("2 s", or seconds); with one, the controller chooses the scheme and the interval.
    `reaction` is what a node that is only slow sets off: `speculative` lets the secondary stand in at the first missed
    heartbeat, reversibly; `conservative` waits until the node counts as dead. `scheme` and `objective` exclude each
    other; without both, the scheme is passive replication.
    """

    scheme: str = ""
    guarantee: str = Guarantee.PRECISE
    ship_every: int | None = None
    refresh_every: int = 1
    objective: str | float | None = None
    reaction: str = Reaction.CONSERVATIVE

    def __post_init__(self) -> None:
        if self.scheme and self.objective is not None:
            raise InvalidInput(
                f"Recovery(scheme='{self.scheme}', objective={self.objective!r})",
                why="with an objective the controller chooses the scheme, and chooses again when the load changes",
                fix="give one of the two",
            )
        object.__setattr__(self, "scheme", member(Scheme, self.scheme or Scheme.PASSIVE_REPLICATION, "scheme"))
        object.__setattr__(self, "guarantee", member(Guarantee, self.guarantee, "guarantee"))
        object.__setattr__(self, "reaction", member(Reaction, self.reaction, "reaction"))
        for name, what in (("ship_every", "checkpoints are shipped"), ("refresh_every", "a hot standby is refreshed")):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise InvalidInput(
                    f"Recovery({name}={value!r})",
                    why=f"{what} after every so many epochs",
                    fix="give a whole number, 1 or more",
                )
        if self.objective is not None:
            object.__setattr__(self, "objective", _objective(self.objective))

    @property
    def objective_s(self) -> float | None:
        return None if self.objective is None else float(self.objective)

    def interval(self, scheme: Scheme) -> int:
        """Epochs between two shipped checkpoints while a slice is protected by this scheme."""
        return self.ship_every or SHIP_EVERY.get(scheme, SHIP_SELDOM)


def _objective(value: str | float) -> float:
    found = seconds(value)
    if not 0 <= found < math.inf:
        raise InvalidInput(
            f"Recovery(objective={value!r})",
            why="an objective is the time within which a slice is back, 0 or more",
            fix='give a time, like objective="2 s"',
        )
    return found


def member(kind: type[StrEnum], value: str, what: str) -> StrEnum:
    try:
        return kind(value)
    except ValueError:
        raise InvalidInput(
            f"'{value}' is not a {what}", why=f"there is no {what} of that name", fix=f"use one of {', '.join(kind)}"
        ) from None
