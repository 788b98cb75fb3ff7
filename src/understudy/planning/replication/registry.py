"""Planners by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from understudy.errors import InvalidInput

if TYPE_CHECKING:
    from understudy.planning.replication.plan import Planner

_MODULES = {
    "exact": "exact",
    "dynamic": "dynamic",
    "structure-aware": "structure_aware",
    "greedy": "greedy",
    "random": "random",
}
NAMES = tuple(_MODULES)


def planner(name: str) -> Planner:
    """Imports the planner only now: `exact` alone needs a solver."""
    if name not in _MODULES:
        raise InvalidInput(
            f"there is no algorithm called {name}",
            why="planners are found by name",
            fix=f"use one of {', '.join(NAMES)}",
        )
    module = import_module(f"understudy.planning.replication.planners.{_MODULES[name]}")
    found: Planner = module.plan
    return found
