"""What an importance heuristic returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from understudy.planning.availability.workload import Floats, Workload


@dataclass(frozen=True, eq=False)
class Rating:
    """Importance of every operator, and of every query when whole queries are to be protected."""

    operators: Floats
    queries: Floats | None = None


Heuristic = Callable[["Workload", "np.random.Generator"], Rating]
