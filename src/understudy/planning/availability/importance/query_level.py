"""Query-level versions (Grüneberger et al. 2013, §3.1.3): a query with one bare operator is hardly safer than before.

The paper leaves open how operator values become a query value. We take their mean, which stays in [0, 1] and does not
favour long queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.availability.importance.rating import Heuristic, Rating

if TYPE_CHECKING:
    from understudy.planning.availability.workload import Workload


def query_level(heuristic: Heuristic) -> Heuristic:
    """An operator is then worth as much as the best query that needs it."""

    def rate(workload: Workload, rng: np.random.Generator) -> Rating:
        operators = heuristic(workload, rng).operators
        sizes = np.diff(workload.offsets)
        owner = np.repeat(np.arange(len(workload.queries)), sizes)
        sums = np.bincount(owner, weights=operators[workload.members], minlength=len(workload.queries))
        queries = np.minimum(sums / np.maximum(sizes, 1), 1.0)  # a mean of ones may round above one
        best = np.zeros(len(operators))
        np.maximum.at(best, workload.members, queries[owner])
        return Rating(best, queries)

    return rate
