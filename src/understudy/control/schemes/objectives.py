"""What the controller is given, what it keeps, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from understudy.control.schemes.costs import Usage
from understudy.control.schemes.decisions import Decision, Figures
from understudy.control.schemes.history import History
from understudy.control.schemes.margin import CAREFUL, NO_PENALTY, Caution, Penalty
from understudy.model.config import DEFAULTS, ControllerSection
from understudy.model.costs import EVERYTHING, Costs
from understudy.model.recovery import SHIP_SELDOM, Guarantee, Scheme

INTERVALS = (1, 2, SHIP_SELDOM)
_USUAL = DEFAULTS.controller


@dataclass(frozen=True)
class Settings:
    """`every_s`: how often the controller looks. `cool_down_s`: at most one change per slice in this time.

    `descend`: what a slower choice needs on top of the margin, so that a slice on the edge does not go back and forth.
    `tie`: costs that differ by less are the same, and the faster is taken. `gain`: what a change has to save, as a
    share of what active replication costs; moving a secondary about is work too.
    """

    costs: Costs = EVERYTHING
    every_s: float = _USUAL.every_s
    cool_down_s: float = _USUAL.cool_down_s
    descend: float = _USUAL.descend_share
    tie: float = _USUAL.tie_share
    gain: float = _USUAL.gain_share
    intervals: tuple[int, ...] = INTERVALS
    caution: Caution = CAREFUL

    @classmethod
    def of(cls, section: ControllerSection, costs: Costs) -> Settings:
        """As configured, with what the application says about costs."""
        return cls(
            costs,
            section.every_s,
            section.cool_down_s,
            section.descend_share,
            section.tie_share,
            section.gain_share,
            caution=Caution.of(section),
        )


@dataclass(frozen=True)
class Watched:
    """A slice with an objective. `strongest`: the scheme it can have at most, whatever it promises.

    `ship_every`: the interval its user insists on; None lets the controller choose.
    """

    history: History
    usage: Usage
    objective_s: float
    guarantee: str = Guarantee.PRECISE
    strongest: Scheme = Scheme.ACTIVE_REPLICATION
    ship_every: int | None = None

    @property
    def slice(self) -> str:
        return self.history.slice


@dataclass(frozen=True)
class Held:
    """What a slice was last given, and when."""

    scheme: Scheme
    ship_every: int
    since: float
    penalty: Penalty = NO_PENALTY


@dataclass(frozen=True)
class Memory:
    """All that is kept between two steps; give it back at the next. As data it survives a restart of the manager."""

    held: Mapping[str, Held] = field(default_factory=lambda: MappingProxyType({}))

    def to_data(self) -> dict[str, list[str | float]]:
        return {
            name: [held.scheme.value, held.ship_every, held.since, held.penalty.amount, held.penalty.at]
            for name, held in self.held.items()
        }

    @classmethod
    def from_data(cls, data: Mapping[str, list[Any]]) -> Memory:
        held = {
            name: Held(Scheme(scheme), int(interval), since, Penalty(amount, at) if amount else NO_PENALTY)
            for name, (scheme, interval, since, amount, at) in data.items()
        }
        return cls(MappingProxyType(held))


@dataclass(frozen=True)
class Outcome:
    decisions: tuple[Decision, ...]
    memory: Memory
    figures: Figures | None
    """None if there was nothing to decide."""

    @property
    def changes(self) -> tuple[Decision, ...]:
        return tuple(decision for decision in self.decisions if decision.changed)
