"""What a selection returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.status import Status

if TYPE_CHECKING:
    from understudy.planning.availability.importance import Rating
    from understudy.planning.availability.workload import Floats, Ints, Workload

# Sums of loads are compared with the spare load; what floating point adds must not cost a replica.
SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Selected:
    """`levels[o]` replicas for operator o; `used` is the load they need together."""

    levels: Ints
    used: float
    status: Status = Status.FEASIBLE

    @property
    def share(self) -> float:
        """The part of all operators that has at least one replica."""
        return float(np.mean(self.levels > 0)) if len(self.levels) else 0.0


Selector = Callable[["Workload", "Rating", float, int], Selected]


def fill(order: Ints, load: Floats, spare: float, copies: int = 1) -> tuple[list[int], float]:
    """Takes what fits, in order; what does not fit is passed over, so that the spare load is used."""
    taken: list[int] = []
    left = spare + SLACK
    weights = (load * copies).tolist()
    for operator in order.tolist():
        if weights[operator] <= left:
            taken.append(operator)
            left -= weights[operator]
    return taken, spare + SLACK - left


def descending(values: Floats) -> Ints:
    """Positions by falling value; ties keep their order, so that the result is deterministic."""
    return np.argsort(-values, kind="stable")
