"""How much a replica of an operator helps: heuristics by name, all with values in [0, 1].

One file per heuristic; `rating` is what each returns. May import `workload`, nothing else of planning. Start with
`out_degree`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.errors import InvalidInput
from understudy.planning.availability.importance import low_utilisation, out_degree, product, random
from understudy.planning.availability.importance.query_level import query_level
from understudy.planning.availability.importance.rating import Heuristic, Rating

if TYPE_CHECKING:
    import numpy as np

    from understudy.planning.availability.workload import Workload

OPERATOR_LEVEL: dict[str, Heuristic] = {
    "random": random.rate,
    "out-degree": out_degree.rate,
    "low-utilisation": low_utilisation.rate,
    "product": product.rate,
}
IMPORTANCE: dict[str, Heuristic] = OPERATOR_LEVEL | {
    f"query-{name}": query_level(heuristic) for name, heuristic in OPERATOR_LEVEL.items()
}

__all__ = ["IMPORTANCE", "OPERATOR_LEVEL", "Heuristic", "Rating", "rate"]


def rate(name: str, workload: Workload, rng: np.random.Generator) -> Rating:
    if name not in IMPORTANCE:
        raise InvalidInput(
            f"no importance heuristic is called {name!r}",
            why="heuristics are found by name",
            fix=f"choose one of: {', '.join(IMPORTANCE)}",
        )
    return IMPORTANCE[name](workload, rng)
