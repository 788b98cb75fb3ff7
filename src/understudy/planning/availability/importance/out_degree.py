"""Query out-degree (Grüneberger et al. 2013, §3.1.1): the share of all queries that break with the operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.planning.availability.importance.rating import Rating

if TYPE_CHECKING:
    import numpy as np

    from understudy.planning.availability.workload import Workload


def rate(workload: Workload, rng: np.random.Generator) -> Rating:  # noqa: ARG001
    return Rating(workload.degree / max(1, len(workload.queries)))
