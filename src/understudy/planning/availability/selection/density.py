"""The knapsack's greedy rule (Grüneberger et al. 2013, §3.2.2): most importance per unit of load first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.availability.selection.selected import Selected, descending, fill

if TYPE_CHECKING:
    from understudy.planning.availability.importance import Rating
    from understudy.planning.availability.workload import Floats, Ints, Workload


def by_density(value: Floats, load: Floats) -> Ints:
    """Operators without load come first: they cost nothing."""
    return descending(np.divide(value, load, out=np.full(len(load), np.inf), where=load > 0))


def select(workload: Workload, rating: Rating, spare: float, level: int) -> Selected:
    levels = np.zeros(len(workload.operators), dtype=np.int64)
    order = by_density(rating.operators, workload.load)
    used = 0.0
    for _ in range(level):
        taken, load = fill(order, workload.load, spare - used)
        levels[taken] += 1
        used += load
        if len(taken) < len(levels):
            break
    return Selected(levels, used)
