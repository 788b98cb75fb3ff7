"""Genetic search, as Grüneberger et al. 2013, §4, suggest: replica hosts of every operator are the genes.

Children take each operator's replicas from one of their parents; what then does not fit or costs too much is
dropped in random order, so every individual is a real placement. The heuristics' answers are in the first
generation and the best individual always survives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.availability.optimise.problem import SLACK, Answer, Problem, State, load_copies
from understudy.planning.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.planning.availability.placement import Copies
    from understudy.planning.availability.survival import Survival

POPULATION = 30
GENERATIONS = 60
ELITE = 4


def search(
    problem: Problem,
    survival: Survival,
    starts: Sequence[Copies],
    seed: int,
    generations: int = GENERATIONS,
    report: Callable[[], None] | None = None,
) -> Answer:
    rng = np.random.default_rng(seed)
    population = [load_copies(problem, copies, survival) for copies in starts[: POPULATION // 2]]
    empty = State(problem, survival)
    while len(population) < POPULATION:
        individual = empty.clone()
        for _ in range(int(rng.integers(0, len(individual.copies) + 1))):
            _mutate(individual, rng)
        population.append(individual)
    for _ in range(generations):
        population.sort(key=lambda state: state.rank, reverse=True)
        children = population[:ELITE]
        while len(children) < POPULATION:
            child = _cross(empty, _parent(population, rng), _parent(population, rng), rng)
            for _ in range(1 + int(rng.integers(0, 3))):
                _mutate(child, rng)
            children.append(child)
        population = children
        if report is not None:
            report()
    best = max(population, key=lambda state: state.rank)
    satisfied = problem.satisfied(best.availability, best.cost)
    return best.answer("genetic", Status.FEASIBLE if satisfied else Status.INFEASIBLE)


def _parent(population: list[State], rng: np.random.Generator) -> State:
    """Tournament of three; the population is sorted, so the smallest index wins."""
    return population[int(rng.integers(0, len(population), 3).min())]


def _cross(empty: State, one: State, two: State, rng: np.random.Generator) -> State:
    child = empty.clone()
    from_one = rng.random(len(child.copies)) < 0.5
    for operator in rng.permutation(len(child.copies)).tolist():
        wanted = (one if from_one[operator] else two).copies[operator]
        for host in wanted[1:]:
            _add(child, operator, host)
    return child


def _mutate(state: State, rng: np.random.Generator) -> None:
    """Drop one, move one, or add one, each as likely as the others."""
    operator = int(rng.integers(len(state.copies)))
    hosts = state.copies[operator]
    kind = int(rng.integers(3))
    if len(hosts) > 1 and kind < 2:
        gone = int(rng.integers(1, len(hosts)))
        state.apply({operator: hosts[:gone] + hosts[gone + 1 :]})
        if kind == 0:
            return
    _add(state, operator, int(rng.integers(len(state.cpu))))


def _add(state: State, operator: int, host: int) -> None:
    if not state.allowed(operator, host):
        return
    changes = {operator: state.with_replica(operator, host)}
    limit = state.problem.cost_limit
    if limit is None or state.cost + state.price(changes) <= limit + SLACK:
        state.apply(changes)
