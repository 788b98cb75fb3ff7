"""Low utilisation (Grüneberger et al. 2013, §3.1.2): small operators first, so that many of them get a replica."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.availability.importance.rating import Rating

if TYPE_CHECKING:
    from understudy.planning.availability.workload import Workload


def rate(workload: Workload, rng: np.random.Generator) -> Rating:  # noqa: ARG001
    largest = float(workload.load.max(initial=0.0))
    if largest == 0.0:
        return Rating(np.ones(len(workload.operators)))
    return Rating(1.0 - workload.load / largest)
