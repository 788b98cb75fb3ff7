"""The whole search: curves if they suffice, else a product of curves and entangled leaves.

A plan for a product is a division of the budget among its factors. The division that looks best by the upper
bounds is taken, its unsettled leaves are solved at their budgets, and so on, until the best looking division
is the best known plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.bounds import BoundBook
from understudy.planning.replication.deadline import Deadline
from understudy.planning.replication.exact.boxes import Answer, slack
from understudy.planning.replication.exact.build import expression_of
from understudy.planning.replication.exact.cases import search_cases
from understudy.planning.replication.exact.curves import Curve, CurveBook, combined, constant
from understudy.planning.replication.exact.expressions import Algebra, Term, bits
from understudy.planning.replication.exact.incumbent import good_plan, improved
from understudy.planning.replication.exact.leaf import Leaf
from understudy.planning.replication.plan import PlanRequest
from understudy.planning.replication.planners import structure_aware

if TYPE_CHECKING:
    from understudy.planning.replication.metrics import Metric, Metrics

EFFORT = 300  # cases tried before anything else
_SMALL = 200  # tasks


def best_plan(
    metrics: Metrics, budget: int, metric: Metric, deadline: Deadline, effort: int = EFFORT
) -> tuple[list[int], float]:
    """Task numbers and an upper bound."""
    count = metrics.problem.task_count
    if budget >= count:
        return list(range(count)), 1.0
    algebra = Algebra()
    term = expression_of(metrics.network, metric, algebra)
    curve = CurveBook(algebra, budget, effort).of_term(term)
    if curve is not None:
        return list(bits(curve.tasks(budget))), curve.at(budget)
    known = _start(metrics, budget, metric, deadline)
    quick = BoundBook(algebra, budget).of_term(term, budget)
    best = Answer(known, metrics.value(metrics.alive(bits(known)), metric), min(quick, 1.0))
    # Without products, curves of entangled parts only stand in the way of the programme's own cuts.
    product = _Product(metrics, budget, metric, 0)
    if product.has_products and effort:
        product = _Product(metrics, budget, metric, effort)
        # Products of sums make weak programmes: let cases try first, most of the time if there are few tasks.
        share = deadline.left() * (0.8 if count <= _SMALL else 0.02)
        best = search_cases(algebra, term, budget, best, Deadline(share))
    if best.bound > best.value + slack(best.value):
        tasks, bound = product.solve(best.tasks, deadline)
        best = Answer(tasks, 0.0, min(best.bound, bound))
    return list(bits(best.tasks)), best.bound


def _start(metrics: Metrics, budget: int, metric: Metric, deadline: Deadline) -> int:
    """The better of two quick plans; on small problems one is structure-aware, so that `exact` is never worse."""
    plans = [good_plan(metrics, budget, metric, deadline)]
    request = PlanRequest(metrics.problem, budget, metric)
    if metrics.problem.task_count <= _SMALL and budget >= len(metrics.problem.operators):
        grown = structure_aware.grow(request, metrics, Deadline(deadline.left() / 10))
        plans.append(improved(metrics, metrics.alive(grown), budget, metric, deadline))
    best = max(plans, key=lambda alive: metrics.value(alive, metric))
    return sum(1 << int(i) for i in np.flatnonzero(best))


class _Product:
    def __init__(self, metrics: Metrics, budget: int, metric: Metric, effort: int) -> None:
        algebra = Algebra(only_scalars=True)
        term = self._term = expression_of(metrics.network, metric, algebra)
        self._budget = budget - term.tasks.bit_count()
        book = CurveBook(algebra, max(self._budget, 0), effort)
        self._leaves: list[Leaf] = []
        curves = [constant()]
        for group in algebra.groups([Term(1.0, 0, (s,)) for s in term.sums]):
            sums = tuple(sorted(s for part in group for s in part.sums))
            curve = book.of_product(sums)
            if curve is None:
                self._leaves.append(Leaf(algebra, book, sums, max(self._budget, 0)))
            else:
                curves.append(curve)
        self._exact = combined(curves, max(self._budget, 0), multiply=True)

    @property
    def has_products(self) -> bool:
        return any(leaf.has_products for leaf in self._leaves)

    def solve(self, known: int, deadline: Deadline) -> tuple[int, float]:
        if self._budget < 0:
            return 0, 0.0
        for leaf in self._leaves:
            leaf.offer(known)
        if len(self._leaves) > 1 or len(self._exact.values) > 1:
            for leaf in self._leaves:
                leaf.relax(deadline)
        while True:
            bound, division = self._divided(upper=True)
            value, best = self._divided(upper=False)
            open_leaves = [(leaf, b) for leaf, b in zip(self._leaves, division, strict=True) if not leaf.settled(b)]
            if bound <= value + slack(value) or not open_leaves or deadline.over():
                break
            leaf, b = max(open_leaves, key=lambda pair: _looseness(*pair))
            top = float(leaf.upper[min(b, leaf.size)])
            leaf.refine(b, deadline, enough=top * value / bound * (1 - 1e-9) if len(self._leaves) > 1 else 0.0)
        return self._plan(best) | self._term.tasks, self._term.coefficient * max(bound, value)

    def _divided(self, *, upper: bool) -> tuple[float, list[int]]:
        """Best value by the upper or lower bounds, and how it divides the budget among the leaves."""
        marks = [_marked(leaf.upper if upper else leaf.lower, k) for k, leaf in enumerate(self._leaves)]
        whole = combined([self._exact_marked(), *marks], self._budget, multiply=True)
        picked = whole.tasks(self._budget)
        return whole.at(self._budget), [picked >> (_SLOT * (k + 1)) & _MASK for k in range(len(marks))]

    def _exact_marked(self) -> Curve:
        return _marked(self._exact.values, -1)

    def _plan(self, division: list[int]) -> int:
        tasks = 0
        for leaf, b in zip(self._leaves, division, strict=True):
            tasks |= leaf.plans[min(b, leaf.size)]
        return tasks | self._exact.tasks(self._budget - sum(division))


_SLOT = 24
_MASK = (1 << _SLOT) - 1


def _marked(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], slot: int) -> Curve:
    """A curve whose `pick` tells the budget it was given: slot k of a number holds the budget of leaf k."""
    return Curve(values, lambda b: b << (_SLOT * (slot + 1)))


def _looseness(leaf: Leaf, budget: int) -> float:
    b = min(budget, leaf.size)
    return float(leaf.upper[b] - leaf.lower[b]) / max(float(leaf.upper[b]), 1e-12)
