"""Branch and bound over boxes: solves the programme of an entangled expression at one budget.

Each node is a box for the factors of products. Without its integers the programme bounds every plan in the
box quickly; while that bound owes more to overestimated products than to broken integers, it is cut at the
factor of the worst product. Then the integers are put back: the programme now proposes a plan, and the box is
cut through it if need be. At a cut the bound of a product is exact, so no proposal is overestimated twice.

Before the search, where a plan is known, the range that every factor can have in a better plan is computed: that
shrinks the first box, often to almost nothing.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from understudy.planning.replication.exact.milp import maximise

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.planning.replication.deadline import Deadline
    from understudy.planning.replication.exact.milp import Solution
    from understudy.planning.replication.exact.model import Box, Model
    from understudy.planning.replication.flows import Floats

TOLERANCE = 1e-7
_ROUNDS = 3  # of shrinking the first box
_MOST_SHRUNK = 60  # factors; shrinking more of them costs more than it saves


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
    excess: float


Node = tuple[float, int, dict[int, "Box"]]


class BoxSearch:
    def __init__(self, model: Model, evaluate: Callable[[int], float]) -> None:
        self._model = model
        self._evaluate = evaluate
        self._curve_of = {column.value: column for column in model.curves}

    def solve(self, budget: int, deadline: Deadline, start: Answer, enough: float = 0.0) -> Answer:
        """Stops when nothing better than `start` and nothing above `enough` is left to find."""
        self._budget, self._deadline, self._enough = budget, deadline, enough
        self._best = start
        boxes = self._shrunk() if self._model.bilinear else {}
        if boxes is None:
            return Answer(start.tasks, start.value, max(start.value, min(start.bound, self._floor())))
        queue: list[Node] = [(-start.bound, 0, boxes)]
        self._number = 0
        while queue and -queue[0][0] > self._floor() and not deadline.over():
            bound, _, boxes = heapq.heappop(queue)
            for node in self._expand(-bound, boxes):
                heapq.heappush(queue, node)
        left = -queue[0][0] if queue else 0.0
        best = self._best
        return Answer(best.tasks, best.value, max(best.value, min(start.bound, max(left, self._settled_below()))))

    def _floor(self) -> float:
        """Boxes with a bound below this value are dropped."""
        return max(self._best.value + slack(self._best.value), self._enough)

    def _settled_below(self) -> float:
        """The highest value that a dropped box may still hold."""
        return self._enough if self._enough > self._best.value else self._best.value

    def _expand(self, bound: float, boxes: dict[int, Box]) -> list[Node]:
        if self._model.bilinear:
            relaxed = self._solved(boxes, integer=False)
            bound = min(bound, relaxed.bound)
            if bound <= self._floor():
                return []
            cut = None if relaxed.values is None else self._cut(relaxed.values, boxes)
            if cut is not None and self._worth_cutting(cut, bound, boxes):
                return self._children(bound, cut, boxes)
        solution = self._solved(boxes, integer=True)
        bound = min(bound, solution.bound)
        if bound <= self._floor():
            return []
        if solution.values is None:
            return [self._node(bound, boxes)] if self._deadline.over() else []
        self._propose(self._tasks(solution.values))
        cut = self._cut(solution.values, boxes)
        if cut is not None:
            return self._children(bound, cut, boxes)
        return [self._node(bound, boxes)] if self._deadline.over() else []

    def _worth_cutting(self, cut: _Cut, bound: float, boxes: dict[int, Box]) -> bool:
        """False for a narrow box: cutting it changes the relaxation little, and the integers have to be put back."""
        low, high = self._model.box(cut.column, boxes)
        wide = high - low > (1 if cut.integer else 0.02 * high)
        return wide and cut.excess > 0.2 * (bound - self._best.value)

    def _solved(self, boxes: dict[int, Box], *, integer: bool) -> Solution:
        floor = 0.0  # a programme without products is solved once, which is faster without a value to beat
        if self._model.bilinear:
            floor = max(self._best.value + slack(self._best.value) / 2, self._enough)
        programme = self._model.programme(self._budget, boxes, at_least=floor, integer=integer)
        return maximise(programme, seconds=self._deadline.left(), gap=slack(self._best.value) / 4)

    def _propose(self, tasks: int) -> None:
        value = self._evaluate(tasks)
        if value > self._best.value:
            self._best = Answer(tasks, value, self._best.bound)

    def _tasks(self, values: Floats) -> int:
        chosen = 0
        for task, column in self._model.tasks.items():
            if values[column] > 0.5:
                chosen |= 1 << task
        for curve in self._model.curves:
            chosen |= curve.curve.tasks(round(values[curve.spent]))
        return chosen

    def _cut(self, values: Floats, boxes: dict[int, Box]) -> _Cut | None:
        """The cut at the product or curve that the programme overestimated most; None if it overestimated nothing."""
        worst: _Cut | None = None
        for curve in self._model.curves:
            excess = float(values[curve.value] - curve.curve.at(round(values[curve.spent])))
            low, high = self._model.box(curve.spent, boxes)
            if excess > (worst.excess if worst else TOLERANCE / 100) and low < high:
                worst = self._cut_curve(curve.spent, values, low, high, excess)
        for pair in self._model.bilinear:
            excess = float(values[pair.product] - values[pair.left] * values[pair.right])
            if excess > (worst.excess if worst else TOLERANCE / 100):
                worst = self._cut_pair(pair.left, pair.right, values, boxes, excess) or worst
        return worst

    def _cut_pair(self, left: int, right: int, values: Floats, boxes: dict[int, Box], excess: float) -> _Cut | None:
        """Through the factor whose box is wider."""
        cuts = [self._cut_factor(column, values, boxes, excess) for column in (left, right)]
        width = [self._width(column, boxes) for column in (left, right)]
        first = 0 if width[0] >= width[1] else 1
        return cuts[first] or cuts[1 - first]

    def _width(self, column: int, boxes: dict[int, Box]) -> float:
        curve = self._curve_of.get(column)
        low, high = self._model.box(column if curve is None else curve.spent, boxes)
        return high - low if curve is None else curve.curve.at(int(high)) - curve.curve.at(int(low))

    def _cut_factor(self, column: int, values: Floats, boxes: dict[int, Box], excess: float) -> _Cut | None:
        curve = self._curve_of.get(column)
        if curve is not None:
            low, high = self._model.box(curve.spent, boxes)
            return self._cut_curve(curve.spent, values, low, high, excess) if low < high else None
        low, high = self._model.box(column, boxes)
        at = float(values[column])
        return _Cut(column, at, False, excess) if low + 1e-9 < at < high - 1e-9 else None

    def _cut_curve(self, spent: int, values: Floats, low: float, high: float, excess: float) -> _Cut:
        return _Cut(spent, max(low, min(math.floor(values[spent] + 1e-6), high - 1)), True, excess)

    def _children(self, bound: float, cut: _Cut, boxes: dict[int, Box]) -> list[Node]:
        low, high = self._model.box(cut.column, boxes)
        second = cut.at + 1 if cut.integer else cut.at
        halves = ((low, cut.at), (second, high))
        return [self._node(bound, boxes | {cut.column: half}) for half in halves]

    def _node(self, bound: float, boxes: dict[int, Box]) -> Node:
        self._number += 1
        return (-bound, self._number, boxes)

    def _shrunk(self) -> dict[int, Box] | None:
        """The part of the first box that can hold a better plan; None if there is no such part."""
        boxes: dict[int, Box] = {}
        factors = dict.fromkeys(c for pair in self._model.bilinear for c in (pair.left, pair.right))
        columns = [self._curve_of[c].spent if c in self._curve_of else c for c in factors]
        if self._best.value <= 0:
            return boxes
        for _ in range(_ROUNDS):
            before = dict(boxes)
            for column in columns[:_MOST_SHRUNK]:
                box = self._range(column, boxes)
                if box is None:
                    return None
                boxes[column] = box
                if self._deadline.over():
                    return boxes
            if all(_similar(before.get(c), boxes[c]) for c in columns[:_MOST_SHRUNK]):
                break
        return boxes

    def _range(self, column: int, boxes: dict[int, Box]) -> Box | None:
        low, high = self._model.box(column, boxes)
        floor = max(self._best.value + slack(self._best.value) / 2, self._enough)
        ends = []
        for sign in (-1.0, 1.0):
            programme = self._model.programme(
                self._budget, boxes, at_least=floor, integer=False, towards=(column, sign)
            )
            solution = maximise(programme, seconds=self._deadline.left())
            if solution.infeasible:
                return None
            ends.append(sign * solution.bound if solution.values is not None else (low if sign < 0 else high))
        if column in self._model.integers:
            return max(low, math.ceil(ends[0] - 1e-6)), min(high, math.floor(ends[1] + 1e-6))
        return max(low, ends[0] - 1e-9), min(high, ends[1] + 1e-9)


def _similar(old: Box | None, new: Box) -> bool:
    return old is not None and new[1] - new[0] > 0.9 * (old[1] - old[0])


def slack(value: float) -> float:
    """The difference that counts as none: relative, down to values of 0.001."""
    return TOLERANCE * max(value, 1e-3)
