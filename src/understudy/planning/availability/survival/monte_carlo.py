"""Survival by drawing failures, with a 95 % interval, for queries too entangled to solve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.availability.survival.outcome import broken, draw_down

if TYPE_CHECKING:
    from understudy.planning.availability.placement import Cluster, Placed
    from understudy.planning.availability.workload import Floats, Workload

Z95 = 1.959963984540054
CHUNK = 1_000_000


@dataclass(frozen=True, eq=False)
class Estimate:
    """Per query: share of trials survived with the interval of Wilson 1927; `mean` with `half` is their average."""

    survival: Floats
    low: Floats
    high: Floats
    mean: float
    half: float
    trials: int


def estimate(workload: Workload, cluster: Cluster, placed: Placed, trials: int, rng: np.random.Generator) -> Estimate:
    copies = placed.matrix()
    alive = np.zeros(len(workload.queries))
    means: list[Floats] = []
    rows = max(1, CHUNK // max(1, len(workload.members)))
    for start in range(0, trials, rows):
        down = draw_down(cluster, min(rows, trials - start), rng)
        running = ~broken(workload, copies, down)
        alive += running.sum(axis=0)
        means.append(running.mean(axis=1) if running.shape[1] else np.ones(len(running)))
    # Queries of one trial share its failures: the interval follows from the spread of trial means, not of queries.
    per_trial = np.concatenate(means)
    half = Z95 * float(per_trial.std(ddof=1)) / np.sqrt(trials) if trials > 1 else 1.0
    low, high = wilson(alive, trials)
    return Estimate(alive / trials, low, high, float(per_trial.mean()), float(half), trials)


def wilson(successes: Floats, trials: int) -> tuple[Floats, Floats]:
    """Wilson's interval: stays inside [0, 1] and covers well near 1, where survival probabilities lie."""
    share = successes / trials
    middle = share + Z95**2 / (2 * trials)
    half = Z95 * np.sqrt(share * (1 - share) / trials + (Z95 / (2 * trials)) ** 2)
    scale = 1 + Z95**2 / trials
    return np.maximum(0.0, (middle - half) / scale), np.minimum(1.0, (middle + half) / scale)
