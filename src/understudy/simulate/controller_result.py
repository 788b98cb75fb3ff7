"""What a simulation of the controller gets, and what it returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.control.schemes.objectives import Settings
from understudy.model.recovery import Guarantee, Scheme
from understudy.simulate.controller_machine import Machine

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Study:
    """`room`: the share of slices for which another node has room, so that passive replication needs no new one."""

    objective_s: float = 2.0
    guarantee: str = Guarantee.PRECISE
    kills: int = 30
    room: float = 0.5
    seed: int = 0
    quantile: float = 1.0
    settings: Settings = field(default_factory=Settings)
    machine: Machine = field(default_factory=Machine)


@dataclass(frozen=True)
class Kill:
    """`cause` is empty if the promise was kept; `predicted_s` is NaN if too little was known."""

    slice: str
    at_s: float
    scheme: Scheme
    established: bool
    predicted_s: float
    actual_s: float
    objective_s: float
    cause: str

    @property
    def ratio(self) -> float:
        return self.predicted_s / self.actual_s if self.actual_s > 0 else 1.0


@dataclass(frozen=True)
class Result:
    """`shares`: of the time, by scheme. `costs`: of the protection, by resource, against always-active.

    `timeline`: rows a second, state bytes, and the scheme's rank of the first slice, one entry an epoch.
    """

    study: Study
    origin: str
    slices: int
    seconds: float
    shares: dict[Scheme, float]
    costs: dict[str, float]
    kills: tuple[Kill, ...]
    changes: int
    closest_changes_s: float | None
    margins: tuple[float, float]
    timeline: tuple[Floats, Floats, Floats]

    @property
    def broken(self) -> tuple[Kill, ...]:
        return tuple(kill for kill in self.kills if kill.cause)

    @property
    def broken_established(self) -> tuple[Kill, ...]:
        return tuple(kill for kill in self.broken if kill.established)

    @property
    def shortfall(self) -> float:
        """The share of predictions below 80 % of the actual time."""
        counted = [kill for kill in self.kills if kill.actual_s > 0 and kill.established]
        return sum(kill.ratio < 0.8 for kill in counted) / len(counted) if counted else 0.0

    def to_data(self) -> dict[str, Any]:
        return {
            "simulated": True,
            "trace": self.origin,
            "slices": self.slices,
            "seconds": self.seconds,
            "objective_s": self.study.objective_s,
            "guarantee": str(self.study.guarantee),
            "seed": self.study.seed,
            "shares": {scheme.value: round(share, 4) for scheme, share in self.shares.items()},
            "costs": {name: round(cost, 4) for name, cost in self.costs.items()},
            "kills": len(self.kills),
            "broken": [_kill_data(kill) for kill in self.broken],
            "broken_established": len(self.broken_established),
            "predictions_below_80_percent": round(self.shortfall, 4),
            "changes": self.changes,
            "closest_changes_s": self.closest_changes_s,
            "margin": {"first": round(self.margins[0], 3), "last": round(self.margins[1], 3)},
        }


def _kill_data(kill: Kill) -> dict[str, Any]:
    data = {name: getattr(kill, name) for name in Kill.__dataclass_fields__}
    return {name: _rounded(value) if isinstance(value, float) else value for name, value in data.items()}


def _rounded(value: float) -> float | None:
    """None for NaN, which JSON cannot express."""
    return None if math.isnan(value) else round(value, 3)
