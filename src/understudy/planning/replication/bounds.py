"""An upper bound without a search: curves, where entangled parts may spend the same replicas twice."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.exact.build import expression_of
from understudy.planning.replication.exact.curves import Curve, combined, gated, largest_first
from understudy.planning.replication.exact.expressions import Algebra, Term
from understudy.planning.replication.flows import network_of

if TYPE_CHECKING:
    from understudy.planning.replication.flows import Floats
    from understudy.planning.replication.plan import PlanRequest


def quick_bound(request: PlanRequest) -> float:
    algebra = Algebra()
    term = expression_of(network_of(request.problem), request.metric, algebra)
    return min(1.0, BoundBook(algebra, request.budget).of_term(term).at(request.budget))


class BoundBook:
    """Never below the true curve; equal to it where nothing is entangled."""

    def __init__(self, algebra: Algebra, limit: int) -> None:
        self._algebra = algebra
        self._limit = limit
        self._known: dict[int, Curve] = {}

    def of_term(self, term: Term) -> Curve:
        if not term.coefficient:
            return Curve(np.zeros(1), _nothing)
        return gated(self.of_product(term.sums), term.tasks, term.coefficient, self._limit)

    def of_product(self, sums: tuple[int, ...]) -> Curve:
        if not sums:
            return Curve(np.ones(1), _nothing)
        groups = self._algebra.groups([Term(1.0, 0, (s,)) for s in sums])
        parts = [_together([self._of_sum(part.sums[0]) for part in group], multiply=True) for group in groups]
        return combined(parts, self._limit, multiply=True)

    def _of_sum(self, number: int) -> Curve:
        if number not in self._known:
            terms = self._algebra.terms[number]
            if all(term.tasks.bit_count() == 1 and not term.sums for term in terms):
                weights = [term.coefficient for term in terms]
                self._known[number] = largest_first(weights, [term.tasks for term in terms], self._limit)
            else:
                groups = [
                    _together([self.of_term(term) for term in group], multiply=False)
                    for group in self._algebra.groups(terms)
                ]
                self._known[number] = combined(groups, self._limit, multiply=False)
        return self._known[number]


def _together(curves: list[Curve], *, multiply: bool) -> Curve:
    """Every part gets the whole budget."""
    size = max(len(curve.values) for curve in curves)
    padded = [np.pad(curve.values, (0, size - len(curve.values)), mode="edge") for curve in curves]
    values: Floats = reduce(np.multiply if multiply else np.add, padded)
    return Curve(values, _nothing)


def _nothing(_: int) -> int:
    return 0
