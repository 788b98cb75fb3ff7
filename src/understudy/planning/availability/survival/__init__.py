"""The availability model: the probability that each query still runs, exact where that is possible.

`exact` solves, `monte_carlo` samples what is too entangled, `outcome` evaluates drawn failures. May import `workload`
and `placement`. Start with `exact`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.availability.survival.exact import STEPS, Survival, TooHard
from understudy.planning.availability.survival.monte_carlo import Estimate, estimate
from understudy.planning.availability.survival.outcome import broken, draw_down

if TYPE_CHECKING:
    from understudy.planning.availability.placement import Cluster, Placed
    from understudy.planning.availability.workload import Floats, Workload

TRIALS = 20_000

__all__ = [
    "Availability",
    "Estimate",
    "Survival",
    "TooHard",
    "availability",
    "broken",
    "draw_down",
    "estimate",
]


@dataclass(frozen=True, eq=False)
class Availability:
    """Survival of each query with bounds (equal where exact); the mean is the share of running queries."""

    queries: Floats
    low: Floats
    high: Floats

    @property
    def mean(self) -> float:
        return float(self.queries.mean()) if len(self.queries) else 1.0

    @property
    def exact(self) -> bool:
        return bool(np.array_equal(self.low, self.high))

    @property
    def interval(self) -> tuple[float, float]:
        """Wide on purpose when sampled: the mean of the queries' own intervals."""
        return (float(self.low.mean()), float(self.high.mean())) if len(self.queries) else (1.0, 1.0)


def availability(
    workload: Workload,
    cluster: Cluster,
    placed: Placed,
    rng: np.random.Generator,
    steps: int = STEPS,
    trials: int = TRIALS,
) -> Availability:
    survival = Survival(cluster, steps)
    values = np.zeros(len(workload.queries))
    hard: list[int] = []
    for query, operators in enumerate(workload.by_query):
        try:
            values[query] = survival.query(placed.copies[operator] for operator in operators)
        except TooHard:
            hard.append(query)
    low, high = values.copy(), values.copy()
    if hard:
        sampled = estimate(workload, cluster, placed, trials, rng)
        values[hard] = sampled.survival[hard]
        low[hard], high[hard] = sampled.low[hard], sampled.high[hard]
    return Availability(values, low, high)
