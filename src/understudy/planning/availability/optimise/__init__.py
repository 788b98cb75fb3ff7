"""Most availability for a cost, least cost for an availability: all methods side by side, with a bound.

Start with `problem`: the two goals, and the state that every method changes. `baseline` tries all recipes of
heuristics, `genetic` and `local` (with `moves`) search from there, `exhaustive` proves small answers, `bound` limits
what any method can reach. May import everything else of `planning.availability`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.availability.optimise import exhaustive, genetic, local
from understudy.planning.availability.optimise.baseline import baselines
from understudy.planning.availability.optimise.bound import Bound, bound
from understudy.planning.availability.optimise.problem import Answer, Problem, State
from understudy.planning.availability.placement import place
from understudy.planning.availability.survival import Survival
from understudy.planning.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.planning.availability.placement import Copies

__all__ = ["Answer", "Bound", "Comparison", "Problem", "optimise"]


@dataclass(frozen=True)
class Comparison:
    """`answers` hold the best heuristic, the genetic and the local search, and the proof if there is one."""

    problem: Problem
    answers: tuple[Answer, ...]
    bound: Bound | None

    @property
    def best(self) -> Answer:
        return max(
            self.answers,
            key=lambda a: (self.problem.rank(a.availability, a.cost), a.status is Status.OPTIMAL),
        )


def optimise(
    problem: Problem,
    seed: int = 1,
    rounds: int = local.ROUNDS,
    generations: int = genetic.GENERATIONS,
    report: Callable[[], None] | None = None,
) -> Comparison:
    survival = Survival(problem.cluster)
    clock = perf_counter()
    known = baselines(problem, survival, seed)
    heuristic = known[0] if known else _nothing(problem, survival)
    answers = [replace(heuristic, method=f"heuristics ({heuristic.method})", seconds=perf_counter() - clock)]
    limit = bound(problem)
    starts = [answer.copies for answer in known]
    clock = perf_counter()
    found = genetic.search(problem, survival, starts, seed, generations, report)
    answers.append(replace(found, seconds=perf_counter() - clock))
    clock = perf_counter()
    starts.insert(0, found.copies)
    if limit is not None and limit.chosen:
        starts.insert(0, _placed(problem, limit))
    found = local.search(problem, survival, starts, seed, rounds, report)
    answers.append(replace(found, seconds=perf_counter() - clock))
    clock = perf_counter()
    best = max(answers, key=lambda a: problem.rank(a.availability, a.cost))
    proven = exhaustive.prove(problem, survival, best)
    if proven is not None:
        answers.append(replace(proven, seconds=perf_counter() - clock))
    return Comparison(problem, tuple(_judge(problem, answer, limit) for answer in answers), limit)


def _nothing(problem: Problem, survival: Survival) -> Answer:
    state = State(problem, survival)
    satisfied = problem.satisfied(state.availability, state.cost)
    return state.answer("none reaches it", Status.FEASIBLE if satisfied else Status.INFEASIBLE)


def _placed(problem: Problem, limit: Bound) -> Copies:
    """Places the choice of the relaxation on hosts; the search starts from it if it keeps the constraint."""
    levels = np.zeros(len(problem.workload.operators), dtype=np.int64)
    levels[list(limit.chosen)] = 1
    value = problem.workload.degree.astype(np.float64)
    return place("first-fit", problem.workload, problem.cluster, problem.primary, levels, value).copies


def _judge(problem: Problem, answer: Answer, limit: Bound | None) -> Answer:
    """Marks an answer that meets the bound as optimal, whichever method found it."""
    if answer.status is not Status.FEASIBLE or limit is None:
        return answer
    value = answer.availability if problem.cost_limit is not None else answer.cost
    if abs(value - limit.value) <= 1e-9:
        return replace(answer, status=Status.OPTIMAL)
    return answer
