"""The best value of an expression for every budget, by dynamic programming.

Parts without shared tasks are independent, so their curves combine by giving each a share of the budget:
sums add, products multiply, and a task in front costs one replica. Where parts do share tasks, cases are
tried: a shared task is replicated or not, a shared sum gets none of the budget, one replica, two, and so on.
Each case frees its neighbours. That is exponential in the entanglement, not in the size, and is given up
(None) when it takes more than a set number of cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.exact.expressions import Algebra, Term
from understudy.planning.replication.exact.tangles import best_task, largest_group, shared_sums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from understudy.planning.replication.flows import Floats

_DEEPEST = 24  # nested decisions: a part that needs more would not finish anyway


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """`values[b]` is the best value with at most b replicas, `pick(b)` the tasks that reach it."""

    values: Floats
    pick: Callable[[int], int]

    def at(self, budget: int) -> float:
        return float(self.values[min(budget, len(self.values) - 1)])

    def tasks(self, budget: int) -> int:
        return self.pick(min(budget, len(self.values) - 1))


def gated(curve: Curve, tasks: int, coefficient: float, limit: int) -> Curve:
    """The curve times a coefficient, once all of `tasks` are paid for."""
    cost = tasks.bit_count()
    values = np.concatenate((np.zeros(cost), coefficient * curve.values))[: limit + 1]
    return Curve(values, lambda b: tasks | curve.tasks(b - cost) if b >= cost else 0)


def constant() -> Curve:
    return Curve(np.ones(1), lambda _: 0)


def largest_first(weights: Sequence[float], tasks: Sequence[int], limit: int) -> Curve:
    """A sum of single tasks needs no programme: take the heaviest."""
    order = np.argsort(-np.asarray(weights), kind="stable")[:limit]
    masks = [0]
    for i in order:
        masks.append(masks[-1] | tasks[i])
    return Curve(np.concatenate(([0.0], np.cumsum(np.asarray(weights)[order]))), lambda b: masks[b])


def combined(curves: list[Curve], limit: int, *, multiply: bool) -> Curve:
    """Smallest first, so that most steps are short."""
    ordered = sorted(curves, key=lambda curve: len(curve.values))
    result = ordered[0]
    for curve in ordered[1:]:
        result = _pair(result, curve, limit, multiply)
    return result


def _pair(short: Curve, long: Curve, limit: int, multiply: bool) -> Curve:
    if len(short.values) > len(long.values):
        short, long = long, short
    size = min(len(short.values) + len(long.values) - 1, limit + 1)
    best = np.full(size, -1.0)
    split = np.zeros(size, dtype=np.int64)
    for spent, value in enumerate(short.values[:size]):
        tail = long.values[: size - spent]
        candidate = value * tail if multiply else value + tail
        window = best[spent : spent + len(tail)]
        better = candidate > window
        window[better] = candidate[better]
        split[spent : spent + len(tail)][better] = spent
    # Past the longer curve's end the window stops early; a larger budget is never worse.
    split = np.where(best >= np.maximum.accumulate(best), split, -1)
    used = np.maximum.accumulate(np.where(split >= 0, np.arange(size), 0))
    values = best[used]
    return Curve(values, lambda b: _picked(short, long, int(split[used[b]]), int(used[b])))


def _picked(short: Curve, long: Curve, spent: int, budget: int) -> int:
    return short.tasks(spent) | long.tasks(budget - spent)


def any_of(options: list[tuple[int, int, Curve]], limit: int) -> Curve:
    """The best of several curves, each once tasks are paid for: (their number, the tasks, the curve)."""
    size = min(max(cost + len(curve.values) for cost, _, curve in options), limit + 1)
    table = np.zeros((len(options), size))
    for row, (cost, _, curve) in zip(table, options, strict=True):
        tail = curve.values[: max(size - cost, 0)]
        row[cost : cost + len(tail)] = tail
        row[cost + len(tail) :] = tail[-1] if len(tail) else 0.0
    chosen = table.argmax(axis=0)

    def pick(budget: int) -> int:
        cost, tasks, curve = options[int(chosen[budget])]
        return tasks | curve.tasks(budget - cost) if budget >= cost else 0

    return Curve(table.max(axis=0), pick)


class CurveBook:
    """Curves of sums, each computed once. `effort` bounds the work on one entangled part."""

    def __init__(self, algebra: Algebra, limit: int, effort: int, give_up: Callable[[], bool] = lambda: False) -> None:
        self.algebra = algebra
        self.limit = limit
        self._effort = effort
        self._give_up = give_up
        self._left: int | None = None
        self._depth = 0
        self._known: dict[tuple[int, ...], Curve | None] = {}

    def of_term(self, term: Term) -> Curve | None:
        if term.coefficient == 0:
            return gated(constant(), 0, 0.0, self.limit)
        inner = self.of_product(term.sums)
        return inner and gated(inner, term.tasks, term.coefficient, self.limit)

    def of_product(self, sums: tuple[int, ...]) -> Curve | None:
        if not sums:
            return constant()
        groups = self.algebra.groups([Term(1.0, 0, (s,)) for s in sums])
        curves = []
        for group in groups:
            members = sorted(s for part in group for s in part.sums)
            same = len(members) if members[0] == members[-1] else 1
            curve = self._of_group((members[0],) if same > 1 else tuple(members))
            if curve is None:
                return None
            # The best square is the square of the best.
            curves.append(Curve(curve.values**same, curve.pick))
        return combined(curves, self.limit, multiply=True)

    def _of_group(self, sums: tuple[int, ...]) -> Curve | None:
        """Sums that share tasks, or a single sum."""
        if sums not in self._known:
            if len(sums) > 1:
                curve = self._decided(Term(1.0, 0, sums), [Term(1.0, 0, (s,)) for s in sums])
            else:
                curve = self._of_sum(sums[0])
            if curve is None and self._left is not None:
                return None  # given up for lack of effort: a later, smaller request may still succeed
            self._known[sums] = curve
        return self._known[sums]

    def _of_sum(self, number: int) -> Curve | None:
        terms = self.algebra.terms[number]
        if all(term.tasks.bit_count() == 1 and not term.sums for term in terms):
            weights = [term.coefficient for term in terms]
            return largest_first(weights, [term.tasks for term in terms], self.limit)
        if len(self.algebra.groups(terms)) < len(terms):
            return self._decided(Term(1.0, 0, (number,)), list(terms))
        curves = []
        for term in terms:
            curve = self.of_term(term)
            if curve is None:
                return None
            curves.append(curve)
        return combined(curves, self.limit, multiply=False)

    def _decided(self, term: Term, parts: list[Term]) -> Curve | None:
        outermost = self._left is None
        if self._left is None:
            self._left = self._effort
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                self._left = 0
            return self._by_cases(term, parts)
        finally:
            self._depth -= 1
            if outermost:
                self._left = None

    def _by_cases(self, term: Term, parts: list[Term]) -> Curve | None:
        options = []
        if not self._left:
            return None
        for cost, tasks, case in self.cases(term, parts):
            if not self._pay():
                return None
            curve = self.of_term(case)
            if curve is None:
                return None
            options.append((cost, tasks, curve))
        return any_of(options, self.limit) if options else None

    def _pay(self) -> bool:
        self._left = (self._left or 0) - 1
        if self._give_up():
            self._left = 0
        return self._left > 0

    def cases(self, term: Term, parts: list[Term]) -> Iterator[tuple[int, int, Term]]:
        """Decide one shared task, or how much a shared sum gets; whichever breaks the tangle up most.

        `parts` are a tangle somewhere in the term. A case: what it costs, its tasks, and what is left.
        """
        supports = [self.algebra.support_of(part) for part in parts]
        task, task_left = best_task(supports)
        found = shared_sums(self.algebra, term, supports)
        amount = min(found, key=lambda sums: (largest_group(supports, self._mask(sums)), sums), default=())
        if amount and largest_group(supports, self._mask(amount)) <= task_left:
            curve = self.of_product(amount)
            if curve is not None:
                yield from self._amounts(term, amount, curve)
                return
        yield 0, 0, self.algebra.restrict_term(term, zeros=1 << task)
        yield 1, 1 << task, self.algebra.restrict_term(term, ones=1 << task)

    def _mask(self, sums: tuple[int, ...]) -> int:
        return reduce(lambda mask, s: mask | self.algebra.support[s], sums, 0)

    def _amounts(self, term: Term, sums: tuple[int, ...], curve: Curve) -> Iterator[tuple[int, int, Term]]:
        for spent, value in enumerate(curve.values):
            if spent == 0 or value > curve.values[spent - 1]:
                values = ((sums[0], float(value)), *((s, 1.0) for s in sums[1:]))
                yield spent, curve.tasks(spent), self.algebra.replaced_term(term, values)
