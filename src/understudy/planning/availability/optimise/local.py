"""Iterated local search with exact evaluation: drop some replicas, rebuild, prune, move, keep the better."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.availability.optimise.moves import affordable, build, improve_hosts, parts, prune
from understudy.planning.availability.optimise.problem import Answer, Problem, State, load_copies
from understudy.planning.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.planning.availability.placement import Copies
    from understudy.planning.availability.survival import Survival

ROUNDS = 60
STARTS = 4


def search(
    problem: Problem,
    survival: Survival,
    starts: Sequence[Copies],
    seed: int,
    rounds: int = ROUNDS,
    report: Callable[[], None] | None = None,
) -> Answer:
    """From nothing and from each start; never worse than the best start that keeps the constraint."""
    rng = np.random.default_rng(seed)
    every = parts(State(problem, survival))
    states = [
        State(problem, survival),
        *(load_copies(problem, copies, survival) for copies in starts[:STARTS]),
    ]
    best = max(states, key=lambda state: state.rank).clone()
    for state in states:
        if not state.problem.satisfied(state.availability, state.cost) and problem.target is None:
            continue
        prune(state)
        build(state, every)
        prune(state)
        improve_hosts(state)
        best = max(best, state, key=lambda s: s.rank)
    for _ in range(rounds):
        trial = best.clone()
        _kick(trial, rng)
        order = [every[position] for position in rng.permutation(len(every))]
        build(trial, order)
        prune(trial)
        improve_hosts(trial)
        if trial.rank > best.rank:
            best = trial
        if report is not None:
            report()
    satisfied = problem.satisfied(best.availability, best.cost)
    return best.answer("local search", Status.FEASIBLE if satisfied else Status.INFEASIBLE)


def _kick(state: State, rng: np.random.Generator) -> None:
    """Drop the replicas of a random handful of operators, at most a third of them, and put some of these
    anywhere: the rebuild always takes the best host, so without chance it would fill scarce ones again."""
    replicated = [operator for operator, hosts in enumerate(state.copies) if len(hosts) > 1]
    if not replicated:
        return
    count = int(rng.integers(1, max(2, len(replicated) // 3 + 1)))
    chosen = rng.choice(replicated, size=min(count, len(replicated)), replace=False).tolist()
    state.apply({operator: state.copies[operator][:1] for operator in chosen})
    for operator in chosen[: int(rng.integers(0, 1 + len(chosen)))]:
        host = int(rng.integers(len(state.cpu)))
        if state.allowed(operator, host):
            changes = {operator: state.with_replica(operator, host)}
            if affordable(state, changes):
                state.apply(changes)
