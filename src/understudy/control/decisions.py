"""What the controller decided, and why, in a form that is stored, shown and tested alike."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any, NamedTuple

from understudy.model.recovery import Scheme
from understudy.model.switches import LADDER, rank


class Why(StrEnum):
    START = "start"
    """Nothing is known yet, so the slice is on the safe side."""
    CHEAPEST = "cheapest"
    """The cheapest that keeps the objective."""
    COOL_DOWN = "cool_down"
    """Another choice would be better, but the last change is too recent."""
    ROOM = "room"
    """A cheaper choice keeps the objective, but too narrowly to move there."""
    UNREACHABLE = "unreachable"
    """Nothing keeps the objective; this is the fastest there is."""


class Decision(NamedTuple):
    """Tuples hold a value for each of the six schemes in the order of LADDER, at the interval each would ship with.

    `totals`: predicted seconds, NaN if unknown. `needed`: those with their margin, which the objective must leave.
    `costs`: of the protection, where the primary is 1. `saved`: the share of the resource that counts most, against
    active replication.
    """

    slice: str
    scheme: Scheme
    ship_every: int
    why: Why
    changed: bool
    totals: tuple[float, ...]
    needed: tuple[float, ...]
    costs: tuple[float, ...]
    objective_s: float
    saved: float
    resource: str

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
    def margins(self) -> dict[Scheme, float]:
        """What each prediction is widened by; 0 where nothing can go wrong."""
        pairs = zip(LADDER, self.needed, self.totals, strict=True)
        return {scheme: needed / total - 1 if total > 0 else 0.0 for scheme, needed, total in pairs}

    @property
    def margin(self) -> float:
        """The widest of them: how unsure the controller is of this slice."""
        return max((margin for margin in self.margins.values() if not math.isnan(margin)), default=0.0)

    @property
    def cost(self) -> float:
        return self.costs[rank(self.scheme)]

    @property
    def cost_ratio(self) -> float:
        """Against active replication."""
        return self.cost / self.costs[-1] if self.costs[-1] > 0 else 1.0

    @property
    def sentence(self) -> str:
        needs = "unknown" if self.chosen_s is None else f"{self.chosen_s:.1f} s"
        parts = [f"{words(self.scheme)}, {needs} of {self.objective_s:g} s"]
        if self.saved > 0.005:
            parts.append(f"saves {self.saved:.0%} {_NAMES[self.resource]}".replace("%", " %"))
        return f"{self.slice}: {', '.join(parts)}; {self._because()}"

    def _because(self) -> str:
        if self.why is Why.START:
            return "nothing is known of it yet"
        if self.why is Why.UNREACHABLE:
            return "nothing keeps the objective, this is the fastest"
        if self.why is Why.COOL_DOWN:
            return "another change has to wait for the cool-down"
        cheaper = [number for number, cost in enumerate(self.costs) if cost < self.cost - 1e-6]
        if not cheaper:
            return "nothing is cheaper"
        nearest = max(cheaper, key=lambda number: self.costs[number])
        name, needed = words(LADDER[nearest]), self.totals[nearest]
        if math.isnan(needed):
            return f"too little is known of {name}"
        reason = f"{name} would need {needed:.1f} s"
        if needed <= self.objective_s:
            reason += f" and a margin of {self.margins[LADDER[nearest]]:.0%}".replace("%", " %")
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
