"""Which operators get how many replicas: selections by name, all within the spare load.

One file per selection (`simple`, `density`, `exact`); `selected` is what each returns. May import `workload` and
`importance`. Start with `simple`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.errors import InvalidInput
from understudy.planning.availability.selection import density, exact, simple
from understudy.planning.availability.selection.selected import Selected, Selector

if TYPE_CHECKING:
    from understudy.planning.availability.importance import Rating
    from understudy.planning.availability.workload import Workload

SELECTION: dict[str, Selector] = {
    "simple": simple.stepwise,
    "at-once": simple.at_once,
    "density": density.select,
    "exact": exact.select,
}

__all__ = ["SELECTION", "Selected", "Selector", "select"]


def select(name: str, workload: Workload, rating: Rating, spare: float, level: int = 1) -> Selected:
    """`level` is the most replicas an operator may have beside its primary."""
    if name not in SELECTION:
        raise InvalidInput(
            f"no selection is called {name!r}",
            why="selections are found by name",
            fix=f"choose one of: {', '.join(SELECTION)}",
        )
    if level < 1 or spare < 0:
        raise InvalidInput(
            f"cannot select with spare load {spare} and level {level}",
            why="the spare load is at least 0, the replication level at least 1",
            fix="correct the two numbers",
        )
    return SELECTION[name](workload, rating, spare, level)
