"""Branch and bound over all replica placements: proves small answers, gives up on large ones.

Operators that are not decided yet are taken as unbreakable, which no completion can beat; a branch whose
optimistic value does not beat the best known answer is cut.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import comb, log
from typing import TYPE_CHECKING

from understudy.planning.availability.optimise.problem import SLACK, Answer, Problem, State, load_copies
from understudy.planning.availability.survival.exact import TooHard
from understudy.planning.status import Status

if TYPE_CHECKING:
    from understudy.planning.availability.placement import Copies
    from understudy.planning.availability.survival import Survival

NODES = 20_000
HOPELESS = log(1e12)
MARGIN = 1e-12


def prove(problem: Problem, survival: Survival, start: Answer, nodes: int = NODES) -> Answer | None:
    """Returns the proven best answer; None when the node budget runs out, or certainly would."""
    hosts = len(problem.cluster.hosts)
    ways = sum(comb(hosts - 1, count) for count in range(problem.level + 1))
    if len(problem.workload.operators) * log(ways) > HOPELESS:
        return None
    search = _Search(problem, survival, start, nodes)
    try:
        search.run(0)
    except TooHard:
        return None
    if search.nodes < 0:
        return None
    if search.best is None:
        if problem.satisfied(start.availability, start.cost):
            return replace(start, method="branch and bound", status=Status.OPTIMAL, note="")
        worst = replace(start, method="branch and bound", status=Status.INFEASIBLE)
        return replace(worst, note="every placement was tried")
    state = load_copies(problem, search.best, survival)
    return state.answer("branch and bound", Status.OPTIMAL)


class _Search:
    def __init__(self, problem: Problem, survival: Survival, start: Answer, nodes: int) -> None:
        self.problem = problem
        self.survival = survival
        self.nodes = nodes
        self.best: Copies | None = None
        self.best_rank = problem.rank(start.availability, start.cost)
        self.state = State(problem, survival)
        # Operators many queries need come first: their choice moves the bound most.
        self.order = sorted(range(len(self.state.copies)), key=lambda o: -len(problem.workload.by_operator[o]))
        self.decided: set[int] = set()

    def run(self, depth: int) -> None:
        self.nodes -= 1
        if self.nodes < 0 or not self._promising():
            return
        if depth == len(self.order):
            self.best = tuple(self.state.copies)
            self.best_rank = self.state.rank
            return
        operator = self.order[depth]
        self.decided.add(operator)
        for copies in self._choices(operator):
            self.state.apply({operator: copies})
            self.run(depth + 1)
            self.state.apply({operator: copies[:1]})
        self.decided.discard(operator)

    def _choices(self, operator: int) -> list[tuple[int, ...]]:
        state, groups = self.state, self.state.cluster.groups
        primary = state.copies[operator]
        hosts = [host for host in range(len(state.cpu)) if state.allowed(operator, host)]
        chosen = [
            (*primary, *more)
            for count in range(min(self.problem.level, len(hosts)), -1, -1)
            for more in combinations(hosts, count)
            if len({groups[host] for host in more}) == count
        ]
        return [copies for copies in chosen if self._affordable({operator: copies})]

    def _affordable(self, changes: dict[int, tuple[int, ...]]) -> bool:
        limit = self.problem.cost_limit
        return limit is None or self.state.cost + self.state.price(changes) <= limit + SLACK

    def _promising(self) -> bool:
        """Whether the optimistic completion can beat the best known answer."""
        rank = self.problem.rank(self._optimistic(), self.state.cost)
        if rank[0] != self.best_rank[0]:
            return rank[0] > self.best_rank[0]
        return rank[1] > self.best_rank[1] + MARGIN

    def _optimistic(self) -> float:
        by_query = self.problem.workload.by_query
        copies = self.state.copies
        if not by_query:
            return 1.0
        total = 0.0
        for operators in by_query:
            total += self.survival.query(copies[o] for o in operators if o in self.decided)
        return total / len(by_query)
