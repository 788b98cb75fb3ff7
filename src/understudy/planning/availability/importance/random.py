"""Random importance: the baseline for the other heuristics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.planning.availability.importance.rating import Rating

if TYPE_CHECKING:
    import numpy as np

    from understudy.planning.availability.workload import Workload


def rate(workload: Workload, rng: np.random.Generator) -> Rating:
    return Rating(rng.random(len(workload.operators)))
