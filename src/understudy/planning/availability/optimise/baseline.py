"""The best the heuristics can do: every recipe, at the largest spare load (or the smallest that suffices)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.availability.importance import IMPORTANCE
from understudy.planning.availability.optimise.problem import Answer, Problem, State, load_copies
from understudy.planning.availability.placement import PLACEMENT
from understudy.planning.availability.plan import Recipe, cost_of, replicate
from understudy.planning.status import Status

if TYPE_CHECKING:
    from understudy.planning.availability.survival import Survival

HALVINGS = 7


def recipes(level: int) -> list[Recipe]:
    return [
        Recipe(heuristic, selection, placement, level)
        for heuristic, selection, placement in product(IMPORTANCE, ("simple", "density", "exact"), PLACEMENT)
        if selection == "simple" or not heuristic.startswith("query-")
    ]


def baselines(problem: Problem, survival: Survival, seed: int) -> list[Answer]:
    """Answers that keep the constraint, best first; none when no recipe does."""
    found: list[Answer] = []
    for recipe in recipes(problem.level):
        states = _limited(problem, survival, recipe, seed) if problem.target is None else []
        if problem.target is not None:
            states = _aimed(problem, survival, recipe, seed)
        name = f"{recipe.heuristic} / {recipe.selection} / {recipe.placement}"
        found += [state.answer(name, Status.FEASIBLE) for state in states]
    return sorted(found, key=lambda a: problem.rank(a.availability, a.cost), reverse=True)


def _limited(problem: Problem, survival: Survival, recipe: Recipe, seed: int) -> list[State]:
    """Selection limits load and the problem limits cost: tries the loads for the highest and the lowest price."""
    limit = problem.cost_limit or 0.0
    prices = [price for price in problem.cluster.prices if price > 0] or [1.0]
    states = [_state(problem, survival, recipe, limit / price, seed) for price in {max(prices), min(prices)}]
    return [state for state in states if state is not None and problem.satisfied(0.0, state.cost)]


def _aimed(problem: Problem, survival: Survival, recipe: Recipe, seed: int) -> list[State]:
    """Bisects the spare load for the least that reaches the target."""
    low, high = 0.0, problem.level * problem.workload.total_load
    found: list[State] = []
    for attempt in range(HALVINGS + 2):
        spare = (0.0, high)[attempt] if attempt < 2 else (low + high) / 2
        state = _state(problem, survival, recipe, spare, seed)
        if state is not None and problem.satisfied(state.availability, state.cost):
            found.append(state)
            high = spare
        elif attempt == 1:
            break
        elif attempt > 1:
            low = spare
        if attempt == 0 and found:
            break
    return found


def _state(problem: Problem, survival: Survival, recipe: Recipe, spare: float, seed: int) -> State | None:
    rng = np.random.default_rng(seed)
    _, placed = replicate(problem.workload, problem.cluster, problem.primary, spare, recipe, rng)
    if problem.cost_limit is not None:
        cost = cost_of(problem.workload, problem.cluster, placed.copies)
        if not problem.satisfied(0.0, cost):
            return None
    return load_copies(problem, placed.copies, survival)
