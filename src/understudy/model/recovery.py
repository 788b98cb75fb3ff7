"""What a user promises about an operator's recovery."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from understudy.errors import InvalidInput


class Scheme(StrEnum):
    """How a slice is protected."""

    NONE = "none"
    PASSIVE_REPLICATION = "passive_replication"


class Guarantee(StrEnum):
    """What a reader may rely on after a failure."""

    PRECISE = "precise"


@dataclass(frozen=True)
class Recovery:
    """How one operator is protected.

    `ship_every` is the number of epochs between two shipped checkpoints: a smaller number means less to replay after a
    failure and more to copy before it. `none` ships nothing; such an operator is for measurement, and a killed node
    takes its state along.
    """

    scheme: str = Scheme.PASSIVE_REPLICATION
    guarantee: str = Guarantee.PRECISE
    ship_every: int = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "scheme", _member(Scheme, self.scheme, "scheme"))
        object.__setattr__(self, "guarantee", _member(Guarantee, self.guarantee, "guarantee"))
        if self.ship_every < 1:
            raise InvalidInput(
                f"Recovery(ship_every={self.ship_every})",
                why="checkpoints are shipped after every so many epochs",
                fix="give 1 or more",
            )


def _member(kind: type[StrEnum], value: str, what: str) -> StrEnum:
    try:
        return kind(value)
    except ValueError:
        raise InvalidInput(
            f"'{value}' is not a {what}", why=f"there is no {what} of that name", fix=f"use one of {', '.join(kind)}"
        ) from None
