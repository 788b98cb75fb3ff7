"""An upper bound without a search: curves, where a task that several parts share is paid for in pieces.

If two parts share a task, each is charged half of it. Any real plan then costs its parts no more in all than
it costs itself, so the best division of the budget among the parts, each now on its own, bounds every plan.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.exact.build import expression_of
from understudy.planning.replication.exact.curves import Curve, combined
from understudy.planning.replication.exact.expressions import Algebra, Term, bits
from understudy.planning.replication.flows import network_of

if TYPE_CHECKING:
    from understudy.planning.replication.flows import Floats
    from understudy.planning.replication.plan import PlanRequest

Prices = tuple[tuple[int, int], ...]  # (price, mask of the tasks that have it); others cost `_WHOLE`

_WHOLE = 6  # pieces of a replica: divisible by 2 and 3
_ALL_WHOLE: Prices = ()


def quick_bound(request: PlanRequest) -> float:
    algebra = Algebra()
    term = expression_of(network_of(request.problem), request.metric, algebra)
    return min(1.0, BoundBook(algebra, request.budget).of_term(term, request.budget))


class BoundBook:
    """Never below the true curve; equal to it where nothing is entangled."""

    def __init__(self, algebra: Algebra, limit: int) -> None:
        self._algebra = algebra
        self._limit = limit * _WHOLE
        self._known: dict[tuple[int, Prices], Curve] = {}

    def of_term(self, term: Term, budget: int) -> float:
        return self._of_term(term, _ALL_WHOLE).at(budget * _WHOLE)

    def of_product(self, sums: tuple[int, ...]) -> Floats:
        """For every budget up to the limit, or up to where more does not help."""
        return self._of_product(sums, _ALL_WHOLE).values[::_WHOLE]

    def _of_term(self, term: Term, prices: Prices) -> Curve:
        if not term.coefficient:
            return Curve(np.zeros(1), _nothing)
        inner = self._of_product(term.sums, prices)
        cost = sum(_price(task, prices) for task in bits(term.tasks))
        values = np.concatenate((np.zeros(cost), term.coefficient * inner.values))
        return Curve(values[: self._limit + 1], _nothing)

    def _of_product(self, sums: tuple[int, ...], prices: Prices) -> Curve:
        if not sums:
            return Curve(np.ones(1), _nothing)
        curves = []
        for group in self._algebra.groups([Term(1.0, 0, (s,)) for s in sums]):
            numbers = Counter(part.sums[0] for part in group)
            shared = _shared(prices, [self._algebra.support[s] for s in numbers])
            for number, power in numbers.items():
                curve = self._of_sum(number, _within(shared, self._algebra.support[number]))
                curves.append(Curve(curve.values**power, _nothing))
        return combined(curves, self._limit, multiply=True)

    def _of_sum(self, number: int, prices: Prices) -> Curve:
        key = (number, prices)
        if key not in self._known:
            curves: list[Curve] = []
            singles: dict[int, list[float]] = {}
            for group in self._algebra.groups(self._algebra.terms[number]):
                shared = _shared(prices, [self._algebra.support_of(term) for term in group])
                for term in group:
                    if term.sums or term.tasks.bit_count() != 1:
                        own = _within(shared, self._algebra.support_of(term))
                        curves.append(self._of_term(term, own))
                    else:
                        price = _price(term.tasks.bit_length() - 1, shared)
                        singles.setdefault(price, []).append(term.coefficient)
            curves += [self._heaviest_first(price, weights) for price, weights in singles.items()]
            self._known[key] = combined(curves, self._limit, multiply=False)
        return self._known[key]

    def _heaviest_first(self, price: int, weights: list[float]) -> Curve:
        """Single tasks of one price need no programme."""
        total = np.concatenate(([0.0], np.cumsum(sorted(weights, reverse=True))))
        values = total[-1:] if price == 0 else np.repeat(total, [price] * len(weights) + [1])
        return Curve(values[: self._limit + 1], _nothing)


def _price(task: int, prices: Prices) -> int:
    return next((price for price, mask in prices if mask >> task & 1), _WHOLE)


def _within(prices: Prices, support: int) -> Prices:
    """Only what matters there, so that equal situations are recognised."""
    return tuple((price, mask & support) for price, mask in prices if mask & support)


def _shared(prices: Prices, supports: list[int]) -> Prices:
    """Prices once every task is paid for in equal pieces by the parts that hold it."""
    if len(supports) < 2:
        return prices
    seen, twice = 0, 0
    for support in supports:
        twice |= seen & support
        seen |= support
    new: dict[int, int] = {price: mask & ~twice for price, mask in prices}
    for task in bits(twice):
        holders = sum(support >> task & 1 for support in supports)
        piece = _price(task, prices) // holders
        new[piece] = new.get(piece, 0) | 1 << task
    return tuple(sorted((price, mask) for price, mask in new.items() if mask and price != _WHOLE))


def _nothing(_: int) -> int:
    return 0
