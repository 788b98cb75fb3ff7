"""What a user promises about an operator's recovery."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from understudy.errors import InvalidInput
from understudy.model.durations import seconds


class Scheme(StrEnum):
    """How a slice is protected, from nothing to two replicas that both work; `docs/schemes.md` compares them.

    `none` exists for measurement: nothing is kept, and state is lost with the node.

    Examples
    --------
    >>> [scheme.value for scheme in Scheme if scheme in ACTIVE]
    ['active_standby', 'active_replication']
    """

    NONE = "none"
    PASSIVE_REPLICATION = "passive_replication"
    DEPLOYED = "deployed"
    PASSIVE_STANDBY_COLD = "passive_standby_cold"
    PASSIVE_STANDBY_HOT = "passive_standby_hot"
    ACTIVE_STANDBY = "active_standby"
    ACTIVE_REPLICATION = "active_replication"


ACTIVE = frozenset({Scheme.ACTIVE_STANDBY, Scheme.ACTIVE_REPLICATION})
"""Both replicas process every epoch, so the operator must be deterministic."""


class Guarantee(StrEnum):
    """What readers of an operator may rely on after a failure.

    - ``precise``: nothing is lost, nothing is delivered twice, every replay equals what was published.
    - ``rollback``: nothing is lost; a replay may differ from what was published before, and the published rows count.
    - ``gap``: the state returns to the last checkpoint and nothing is replayed; missed epochs are published as marked
      gaps.
    - ``amnesia``: the state is lost as well, and no checkpoint is shipped.

    Examples
    --------
    >>> Guarantee("gap").replays
    False
    """

    PRECISE = "precise"
    ROLLBACK = "rollback"
    GAP = "gap"
    AMNESIA = "amnesia"

    @property
    def replays(self) -> bool:
        """Whether missed epochs are processed again after a failure."""
        return self in (Guarantee.PRECISE, Guarantee.ROLLBACK)


class Reaction(StrEnum):
    """What a missed heartbeat causes; `docs/reactions.md` compares them.

    - ``conservative``: nothing, until the node counts as dead.
    - ``speculative``: the secondary stands in at once and works beside the primary, until the primary's node is heard
      again or is given up.

    Examples
    --------
    >>> Reaction("speculative").value
    'speculative'
    """

    CONSERVATIVE = "conservative"
    SPECULATIVE = "speculative"


SHIP_EVERY = {Scheme.PASSIVE_STANDBY_HOT: 1, Scheme.PASSIVE_STANDBY_COLD: 1, Scheme.DEPLOYED: 2}
"""Epochs between two shipped checkpoints. A standby replays what was not shipped: a short interval is back sooner."""
SHIP_SELDOM = 5
"""The interval of the schemes that `SHIP_EVERY` does not name."""


@dataclass(frozen=True)
class Recovery:
    """How the slices of one operator are protected and recovered.

    Give a `scheme`, or an `objective` and let the controller choose the cheapest scheme that keeps it. Without either,
    the scheme is passive replication.

    Parameters
    ----------
    scheme : str, optional
        ``"active_replication"``, ``"active_standby"``, ``"passive_standby_hot"``, ``"passive_standby_cold"``,
        ``"deployed"``, ``"passive_replication"``, or ``"none"`` for measurement. From the first to the last, recovery
        takes longer and costs less.
    guarantee : {"precise", "rollback", "gap", "amnesia"}, optional
        What readers may rely on after a failure. Default: ``"precise"``: nothing lost, nothing twice.
    ship_every : int, optional
        Epochs between two shipped checkpoints. A smaller number leaves less to replay after a failure and copies more
        before it. Default: 1 for a hot or cold standby, 2 for ``"deployed"``, 5 otherwise; with an objective the
        controller chooses it.
    refresh_every : int, optional
        Epochs after which a hot standby brings the state in its memory up to what was shipped. Default: 1.
    objective : str or float, optional
        Time after a failure within which every slice must be back: ``"2 s"``, or seconds. Excludes `scheme`.
    reaction : {"conservative", "speculative"}, optional
        What a silent node causes. ``"speculative"``: the secondary stands in at the first missed heartbeat, reversibly.
        ``"conservative"``, the default: nothing until the node counts as dead.

    Raises
    ------
    InvalidInput
        If both `scheme` and `objective` are given, a name is unknown, an interval is not a whole number above 0, or the
        objective is not a time.

    Examples
    --------
    >>> import understudy as us
    >>> us.Recovery().scheme.value
    'passive_replication'
    >>> us.Recovery(objective="500 ms", reaction="speculative").objective_s
    0.5
    >>> us.Recovery(scheme="active_standby", objective="2 s")
    Traceback (most recent call last):
    understudy.errors.InvalidInput: Recovery(scheme='active_standby', objective='2 s')
      why: with an objective the controller chooses the scheme, and chooses again when the load changes
      fix: give one of the two
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
        """The objective in seconds, or None."""
        return None if self.objective is None else float(self.objective)

    def interval(self, scheme: Scheme) -> int:
        """Returns the epochs between two shipped checkpoints while this scheme protects a slice.

        Parameters
        ----------
        scheme : Scheme
            The scheme in use; with an objective it changes during a run.

        Returns
        -------
        int
            `ship_every` if it was given, otherwise the default of the scheme.

        Examples
        --------
        >>> Recovery().interval(Scheme.PASSIVE_STANDBY_HOT), Recovery().interval(Scheme.PASSIVE_REPLICATION)
        (1, 5)
        """
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
