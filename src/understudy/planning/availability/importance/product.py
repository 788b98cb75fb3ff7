"""Out-degree times low utilisation (Grüneberger et al. 2013, §3.2.2): their substitute for profit per weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.planning.availability.importance import low_utilisation, out_degree
from understudy.planning.availability.importance.rating import Rating

if TYPE_CHECKING:
    import numpy as np

    from understudy.planning.availability.workload import Workload


def rate(workload: Workload, rng: np.random.Generator) -> Rating:
    used = out_degree.rate(workload, rng).operators
    return Rating(used * low_utilisation.rate(workload, rng).operators)
