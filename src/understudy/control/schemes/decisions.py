"""What the controller decided, and why, in a form that is stored, shown and tested alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.model.capabilities import LADDER, rank
from understudy.model.recovery import Scheme

Floats = NDArray[np.float64]


class Why(StrEnum):
    START = "start"
    """The slice is new, so it is on the safe side."""
    CHEAPEST = "cheapest"
    """The cheapest that keeps the objective."""
    COOL_DOWN = "cool_down"
    """Another choice would be better, but the last change is too recent."""
    ROOM = "room"
    """A cheaper choice keeps the objective, but too narrowly, or saves too little, to move there."""
    UNREACHABLE = "unreachable"
    """Nothing keeps the objective; this is the fastest there is."""


@dataclass(frozen=True, eq=False)
class Figures:
    """The numbers behind the decisions of one step: a row for each slice, a column for each scheme as in LADDER.

    Each scheme is shown at the interval it would ship with. Kept together and looked up on demand, because ten thousand
    decisions are made for every one that somebody reads.
    """

    totals: Floats
    """Predicted seconds, NaN if unknown."""
    needed: Floats
    """Those with their margin, which the objective must leave."""
    costs: Floats
    """Of the protection, where the primary is 1."""
    objectives: Floats
    saved: Floats
    """The share of the resource that counts most, against active replication."""
    resource: str

    @property
    def margins(self) -> Floats:
        """What each prediction is widened by; 0 where nothing can go wrong, NaN where nothing is known."""
        found: Floats = self.needed / np.where(self.totals > 0, self.totals, 1.0) - 1.0
        return np.where(self.totals == 0, 0.0, found)


class Decision(NamedTuple):
    """Of one slice in one step. `changed`: the scheme or the interval is not what it was."""

    slice: str
    scheme: Scheme
    ship_every: int
    why: Why
    changed: bool
    row: int
    figures: Figures

    @property
    def totals(self) -> tuple[float, ...]:
        return tuple(self.figures.totals[self.row].tolist())

    @property
    def needed(self) -> tuple[float, ...]:
        return tuple(self.figures.needed[self.row].tolist())

    @property
    def costs(self) -> tuple[float, ...]:
        return tuple(self.figures.costs[self.row].tolist())

    @property
    def objective_s(self) -> float:
        return float(self.figures.objectives[self.row])

    @property
    def predicted_s(self) -> dict[Scheme, float | None]:
        return {s: None if math.isnan(t) else t for s, t in zip(LADDER, self.totals, strict=True)}

    @property
    def chosen_s(self) -> float | None:
        """What the chosen scheme promises."""
        return self.predicted_s[self.scheme]

    def keeps(self, scheme: Scheme) -> bool:
        """Whether a scheme would keep the objective with its margin."""
        return self.needed[rank(scheme)] <= self.objective_s

    @property
    def margin(self) -> float:
        """The widest of the six: how unsure the controller is of this slice."""
        return float(np.nanmax(self.figures.margins[self.row]))

    @property
    def cost(self) -> float:
        return self.costs[rank(self.scheme)]

    @property
    def cost_ratio(self) -> float:
        """Against active replication."""
        active = self.costs[-1]
        return self.cost / active if active > 0 else 1.0

    @property
    def sentence(self) -> str:
        promised, saved = self.chosen_s, float(self.figures.saved[self.row])
        needs = "unknown" if promised is None else f"{promised:.1f} s"
        parts = [f"{words(self.scheme)}, {needs} of {self.objective_s:g} s"]
        if saved > 0.005:
            parts.append(f"saves {_percent(saved)} {_NAMES[self.figures.resource]}")
        return f"{self.slice}: {', '.join(parts)}; {self._because()}"

    def _because(self) -> str:
        if self.why is Why.START:
            return "nothing is known of it yet"
        if self.why is Why.UNREACHABLE:
            return "nothing keeps the objective, this is the fastest"
        if self.why is Why.COOL_DOWN:
            return "another change has to wait for the cool-down"
        costs = self.costs
        cheaper = [number for number, cost in enumerate(costs) if cost < self.cost - 1e-6]
        if not cheaper:
            return "nothing is cheaper"
        nearest = max(cheaper, key=lambda number: costs[number])
        name, total, needed = words(LADDER[nearest]), self.totals[nearest], self.needed[nearest]
        if math.isnan(total):
            return f"too little is known of {name}"
        if needed <= self.objective_s and self.why is Why.CHEAPEST:
            return f"{name} would hardly be cheaper"
        reason = f"{name} would need {total:.1f} s"
        if total <= self.objective_s:
            reason += f" and a margin of {_percent(needed / total - 1)}" if total > 0 else ""
            reason += ", with room to move there" if self.why is Why.ROOM else ""
        return reason

    def to_data(self) -> dict[str, Any]:
        return {
            "slice": self.slice,
            "scheme": self.scheme.value,
            "ship_every": self.ship_every,
            "why": self.why.value,
            "changed": self.changed,
            "predicted_s": {s.value: None if t is None else round(t, 3) for s, t in self.predicted_s.items()},
            "objective_s": self.objective_s,
            "margin": round(self.margin, 3),
            "cost": round(self.cost, 4),
            "cost_ratio": round(self.cost_ratio, 4),
            "sentence": self.sentence,
        }


_NAMES = {"cpu": "CPU", "memory": "memory", "network": "network", "nodes": "nodes"}


def words(scheme: Scheme) -> str:
    return scheme.value.replace("_", " ")


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
