"""Branch and bound over boxes: solves the programme of an entangled expression at one budget.

Each node is a box for the factors of products. Its programme bounds every plan in the box from above and
proposes one plan. While the bound exceeds the best plan, the box is cut through the proposal, at the factor
of the product that was overestimated most: at the cut the bound of a product is exact, so the same proposal
cannot be overestimated again. Without products the first node is the answer.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from understudy.planning.replication.exact.milp import maximise

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.planning.replication.deadline import Deadline
    from understudy.planning.replication.exact.model import Box, Model
    from understudy.planning.replication.flows import Floats

TOLERANCE = 1e-7


@dataclass(slots=True)
class Answer:
    """Best plan found, its value, and what no plan exceeds."""

    tasks: int
    value: float
    bound: float


@dataclass(frozen=True, slots=True)
class _Cut:
    column: int
    at: float
    integer: bool


class BoxSearch:
    def __init__(self, model: Model, evaluate: Callable[[int], float]) -> None:
        self._model = model
        self._evaluate = evaluate
        self._curve_of = {column.value: column for column in model.curves}

    def solve(self, budget: int, deadline: Deadline, start: Answer, enough: float = 0.0) -> Answer:
        """Stops when nothing better than `start` and nothing above `enough` is left to find."""
        best = start
        queue: list[tuple[float, int, dict[int, Box]]] = [(-start.bound, 0, {})]
        number = 0
        while queue:
            bound = -queue[0][0]
            if bound <= max(best.value + slack(best.value), enough) or deadline.over():
                return Answer(best.tasks, best.value, max(bound, best.value))
            _, _, boxes = heapq.heappop(queue)
            floor = max(best.value + slack(best.value) / 2, enough)
            programme = self._model.programme(budget, boxes, at_least=floor)
            solution = maximise(programme, seconds=deadline.left(), gap=slack(best.value) / 4)
            if solution.infeasible:
                continue
            bound = min(bound, solution.bound)
            cut = None
            if solution.values is not None:
                tasks = self._tasks(solution.values)
                value = self._evaluate(tasks)
                if value > best.value:
                    best = Answer(tasks, value, start.bound)
                cut = self._cut(solution.values, boxes)
            if cut is None and deadline.over():
                number += 1
                heapq.heappush(queue, (-bound, number, boxes))
            if cut is None:
                # Integers and products are exact here, or the solver stopped early: its bound stands.
                if bound > best.value + slack(best.value) and solution.values is None:
                    return Answer(best.tasks, best.value, max([bound, *(-q[0] for q in queue)]))
                continue
            for child in self._children(cut, boxes):
                number += 1
                heapq.heappush(queue, (-bound, number, child))
        return Answer(best.tasks, best.value, max(best.value, min(start.bound, enough)))

    def _tasks(self, values: Floats) -> int:
        chosen = 0
        for task, column in self._model.tasks.items():
            if values[column] > 0.5:
                chosen |= 1 << task
        for curve in self._model.curves:
            chosen |= curve.curve.tasks(int(round(values[curve.spent])))
        return chosen

    def _cut(self, values: Floats, boxes: dict[int, Box]) -> _Cut | None:
        """Where the programme believed too much."""
        worst, cut = TOLERANCE / 100, None
        for curve in self._model.curves:
            spent = int(round(values[curve.spent]))
            excess = values[curve.value] - curve.curve.at(spent)
            low, high = self._model.box(curve.spent, boxes)
            if excess > worst and low < high:
                worst, cut = excess, _Cut(curve.spent, min(spent, high - 1), integer=True)
        for pair in self._model.bilinear:
            excess = values[pair.product] - values[pair.left] * values[pair.right]
            if excess > worst:
                found = self._cut_factor(pair.left, values, boxes) or self._cut_factor(pair.right, values, boxes)
                if found:
                    worst, cut = excess, found
        return cut

    def _cut_factor(self, column: int, values: Floats, boxes: dict[int, Box]) -> _Cut | None:
        curve = self._curve_of.get(column)
        if curve is not None:
            low, high = self._model.box(curve.spent, boxes)
            spent = float(round(values[curve.spent]))
            return _Cut(curve.spent, min(spent, high - 1), integer=True) if low < high else None
        low, high = self._model.box(column, boxes)
        at = float(values[column])
        return _Cut(column, at, integer=False) if low + 1e-9 < at < high - 1e-9 else None

    def _children(self, cut: _Cut, boxes: dict[int, Box]) -> list[dict[int, Box]]:
        low, high = self._model.box(cut.column, boxes)
        second = cut.at + 1 if cut.integer else cut.at
        return [boxes | {cut.column: (low, cut.at)}, boxes | {cut.column: (second, high)}]


def slack(value: float) -> float:
    """Relative for small values: a plan worth 0.001 deserves the same care as one worth 1."""
    return TOLERANCE * max(value, 1e-3)
