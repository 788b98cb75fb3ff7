"""An entangled expression as a mixed-integer programme.

A task is a binary column, a sum a continuous one. Replicated tasks times one sum is the smaller of them,
which is linear and exact once the tasks are integers. A sum that shares no task with the rest, and whose
curve is known, shrinks to two columns: the replicas given to it and the value it then has. Only a product of
two sums is not linear: it is bounded over the box its factors lie in (McCormick 1976), and the solver of the
programme (`boxes`) splits boxes until the bound is tight.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.exact.expressions import Algebra, Term, bits
from understudy.planning.replication.exact.milp import Programme

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.planning.replication.exact.curves import Curve, CurveBook
    from understudy.planning.replication.flows import Floats

Box = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bilinear:
    """Column `product` stands for column `left` times column `right`."""

    product: int
    left: int
    right: int


@dataclass(frozen=True, slots=True, eq=False)
class CurveColumn:
    """`spent` is an integer column, `value` the column of the curve's value there."""

    spent: int
    value: int
    curve: Curve


@dataclass(slots=True)
class Model:
    """Rows that hold in every box; `programme` adds those of one box."""

    tasks: dict[int, int] = field(default_factory=dict)
    curves: list[CurveColumn] = field(default_factory=list)
    bilinear: list[Bilinear] = field(default_factory=list)
    objective: int = 0
    columns: int = 0
    integers: set[int] = field(default_factory=set)
    upper: dict[int, float] = field(default_factory=dict)
    rows: list[tuple[list[int], list[float], float]] = field(default_factory=list)

    def column(self, *, integer: bool = False, upper: float = 1.0) -> int:
        if integer:
            self.integers.add(self.columns)
        self.upper[self.columns] = upper
        self.columns += 1
        return self.columns - 1

    def row(self, columns: list[int], coefficients: list[float], limit: float) -> None:
        self.rows.append((columns, coefficients, limit))

    def box(self, column: int, boxes: Mapping[int, Box]) -> Box:
        return boxes.get(column, (0.0, self.upper[column]))

    def programme(
        self,
        budget: int,
        boxes: Mapping[int, Box],
        *,
        at_least: float = 0.0,
        integer: bool = True,
        towards: tuple[int, float] | None = None,
    ) -> Programme:
        """Row 0 is the budget. `towards` maximises another column, with a sign, instead of the objective."""
        spending = [*self.tasks.values(), *(c.spent for c in self.curves)]
        rows = [(spending, [1.0] * len(spending), float(budget)), *self.rows]
        bounds = np.array([self.box(c, boxes) for c in range(self.columns)]).reshape(-1, 2)
        for curve in self.curves:
            rows += self._curve_rows(curve, bounds)
        for pair in self.bilinear:
            rows += _mccormick(pair, bounds)
        bounds[self.objective, 0] = max(bounds[self.objective, 0], at_least)
        objective = np.zeros(self.columns)
        column, sign = towards or (self.objective, 1.0)
        objective[column] = sign
        kinds = np.zeros(self.columns, dtype=bool)
        if integer:
            kinds[list(self.integers)] = True
        sizes = [len(columns) for columns, _, _ in rows]
        return Programme(
            objective,
            bounds[:, 0],
            bounds[:, 1],
            kinds,
            np.repeat(np.arange(len(rows)), sizes),
            np.array([c for columns, _, _ in rows for c in columns], dtype=np.int64),
            np.array([a for _, coefficients, _ in rows for a in coefficients]),
            np.array([limit for _, _, limit in rows]),
        )

    def _curve_rows(self, column: CurveColumn, bounds: Floats) -> list[tuple[list[int], list[float], float]]:
        """The upper hull of the curve between the ends of its box; also narrows the box of the value."""
        low, high = (round(b) for b in bounds[column.spent])
        values = column.curve.values
        bounds[column.value, 0] = max(bounds[column.value, 0], values[low])
        bounds[column.value, 1] = min(bounds[column.value, 1], values[high])
        hull = upper_hull(values, low, high)
        return [
            ([column.value, column.spent], [1.0, -slope], float(values[b] - slope * b))
            for b, slope in hull
            if slope > 0
        ]


def upper_hull(values: Floats, low: int, high: int) -> list[tuple[int, float]]:
    """Starting point and slope of each edge of the smallest concave function above the values."""
    corners = [low]
    for b in range(low + 1, high + 1):
        while len(corners) > 1:
            first, last = corners[-2], corners[-1]
            if (values[last] - values[first]) * (b - first) > (values[b] - values[first]) * (last - first):
                break
            corners.pop()
        corners.append(b)
    return [(b, float((values[c] - values[b]) / (c - b))) for b, c in itertools.pairwise(corners)]


def _mccormick(pair: Bilinear, bounds: Floats) -> list[tuple[list[int], list[float], float]]:
    (l1, u1), (l2, u2) = bounds[pair.left], bounds[pair.right]
    if pair.left == pair.right:  # a square lies below its secant
        return [([pair.product, pair.left], [1.0, -(l1 + u1)], -l1 * u1)]
    columns = [pair.product, pair.left, pair.right]
    return [(columns, [1.0, -l2, -u1], -u1 * l2), (columns, [1.0, -u2, -l1], -l1 * u2)]


class ModelBuilder:
    """Builds the programme of a product of sums."""

    def __init__(self, algebra: Algebra, book: CurveBook) -> None:
        self._algebra = algebra
        self._book = book

    def build(self, sums: tuple[int, ...]) -> Model:
        self.model = Model()
        self._private = self._private_curves(sums)
        self._sums: dict[int, int] = {}
        self._products: dict[tuple[int, int], int] = {}
        self._terms: dict[tuple[int, tuple[int, ...]], int] = {}
        self.model.objective = self._product(sums)
        return self.model

    def _private_curves(self, root: tuple[int, ...]) -> dict[int, Curve]:
        """Sums whose tasks appear nowhere else, topmost first."""
        found: dict[int, Curve] = {}
        seen: set[int] = set()
        queue = list(root)
        while queue:
            number = queue.pop(0)
            if number in seen:
                continue
            seen.add(number)
            curve = None
            if not self._outside(root, number) & self._algebra.support[number]:
                curve = self._book.of_product((number,))
            if curve is not None and root != (number,):
                found[number] = curve
            else:
                queue += [s for term in self._algebra.terms[number] for s in term.sums]
        return found

    def _outside(self, root: tuple[int, ...], number: int) -> int:
        """All tasks in use somewhere other than below this sum; all of its own if it is used twice."""
        mask, stack, seen, uses = 0, list(root), {number}, root.count(number)
        while stack:
            current = stack.pop()
            if current in seen:
                continue
            seen.add(current)
            for term in self._algebra.terms[current]:
                mask |= term.tasks
                stack += term.sums
                uses = max(uses, term.sums.count(number))
        return mask if uses < 2 else -1

    def _task(self, task: int) -> int:
        if task not in self.model.tasks:
            self.model.tasks[task] = self.model.column(integer=True)
        return self.model.tasks[task]

    def _sum(self, number: int) -> int:
        if number not in self._sums:
            if number in self._private:
                self._sums[number] = self._curve(self._private[number])
            else:
                terms = self._algebra.terms[number]
                columns = [self._term(term) for term in terms]
                value = self.model.column()
                self.model.row([value, *columns], [1.0, *(-term.coefficient for term in terms)], 0.0)
                self._sums[number] = value
        return self._sums[number]

    def _curve(self, curve: Curve) -> int:
        top = len(curve.values) - 1
        spent = self.model.column(integer=True, upper=float(top))
        value = self.model.column(upper=min(1.0, float(curve.values[top])))
        self.model.curves.append(CurveColumn(spent, value, curve))
        return value

    def _term(self, term: Term) -> int:
        """Without the coefficient."""
        if term.tasks.bit_count() == 1 and not term.sums:
            return self._task(term.tasks.bit_length() - 1)
        key = (term.tasks, term.sums)
        if key not in self._terms:
            product = self._product(term.sums) if term.sums else None
            if product is not None and not term.tasks:
                self._terms[key] = product
            else:
                self._terms[key] = self._smallest([*map(self._task, bits(term.tasks))], product)
        return self._terms[key]

    def _smallest(self, tasks: list[int], product: int | None) -> int:
        value = self.model.column()
        for column in [*tasks, *([] if product is None else [product])]:
            self.model.row([value, column], [1.0, -1.0], 0.0)
        return value

    def _product(self, sums: tuple[int, ...]) -> int:
        result = self._sum(sums[0])
        for number in sums[1:]:
            pair = (result, self._sum(number))
            if pair not in self._products:
                self._products[pair] = self.model.column()
                self.model.bilinear.append(Bilinear(self._products[pair], *pair))
            result = self._products[pair]
        return result
