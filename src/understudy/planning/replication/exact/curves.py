"""The best value of an expression for every budget, by dynamic programming.

Parts without shared tasks are independent, so their curves combine by giving each a share of the budget:
sums add, products multiply, and a task in front costs one replica. Where parts do share tasks, one task
is decided both ways, which frees its neighbours; that is exponential in the entanglement, not in the size,
and is given up (None) when it takes more than a set number of decisions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.exact.expressions import Algebra, Term, bits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


def best_of(first: Curve, second: Curve) -> Curve:
    size = max(len(first.values), len(second.values))
    a, b = (np.pad(c.values, (0, size - len(c.values)), mode="edge") for c in (first, second))
    left = a >= b
    return Curve(np.where(left, a, b), lambda n: first.tasks(n) if left[n] else second.tasks(n))


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


class CurveBook:
    """Curves of sums, each computed once. `decisions` bounds the work on one entangled part."""

    def __init__(self, algebra: Algebra, limit: int, decisions: int) -> None:
        self.algebra = algebra
        self.limit = limit
        self._decisions = decisions
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
                return None  # given up for lack of decisions: a later, smaller request may still succeed
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
            self._left = self._decisions
        self._depth += 1
        try:
            if self._left <= 0 or self._depth > _DEEPEST:
                self._left = 0
                return None
            self._left -= 1
            task = 1 << self._branching_task(parts)
            kept = self.of_term(self.algebra.restrict_term(term, ones=task))
            dropped = kept and self.of_term(self.algebra.restrict_term(term, zeros=task))
            if kept is None or dropped is None:
                return None
            return best_of(dropped, gated(kept, task, 1.0, self.limit))
        finally:
            self._depth -= 1
            if outermost:
                self._left = None

    def _branching_task(self, parts: list[Term]) -> int:
        """Among the tasks in several parts, the one whose removal leaves the smallest largest group."""
        supports = [self.algebra.support_of(part) for part in parts]
        uses = Counter(task for support in supports for task in bits(support))
        shared = [task for task, count in uses.items() if count > 1]
        shared.sort(key=lambda task: (-uses[task], task))
        step = max(1, len(shared) // 8)
        candidates = shared[:8] + shared[8::step]
        return min(candidates, key=lambda task: (_largest_group(supports, 1 << task), -uses[task], task))


def _largest_group(supports: list[int], without: int) -> int:
    groups: list[int] = []
    for support in supports:
        mask = support & ~without
        apart = []
        for group in groups:
            if group & mask:
                mask |= group
            else:
                apart.append(group)
        groups = [*apart, mask]
    return max(group.bit_count() for group in groups)
