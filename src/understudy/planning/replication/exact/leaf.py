"""An entangled part of a product: lower and upper bounds for every budget, tightened on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.bounds import BoundBook
from understudy.planning.replication.exact.boxes import Answer, BoxSearch, slack
from understudy.planning.replication.exact.milp import maximise
from understudy.planning.replication.exact.model import ModelBuilder

if TYPE_CHECKING:
    from understudy.planning.replication.deadline import Deadline
    from understudy.planning.replication.exact.curves import CurveBook
    from understudy.planning.replication.exact.expressions import Algebra

_TANGENTS = 12


class Leaf:
    def __init__(self, algebra: Algebra, book: CurveBook, sums: tuple[int, ...], limit: int) -> None:
        self._algebra = algebra
        self.sums = sums
        self.support = 0
        for number in sums:
            self.support |= algebra.support[number]
        self.size = min(limit, self.support.bit_count())
        self._model = ModelBuilder(algebra, book).build(sums)
        self._search = BoxSearch(self._model, lambda tasks: algebra.value(sums, tasks))
        known = np.minimum(BoundBook(algebra, self.size).of_product(sums), 1.0)
        self.upper = np.pad(known, (0, self.size + 1 - len(known)), mode="edge")
        self.lower = np.zeros(self.size + 1)
        self.plans = [0] * (self.size + 1)

    @property
    def has_products(self) -> bool:
        return bool(self._model.bilinear)

    def offer(self, tasks: int) -> None:
        """A plan from elsewhere; its part in this leaf may be the best known."""
        tasks &= self.support
        self._keep(tasks, self._algebra.value(self.sums, tasks))

    def _keep(self, tasks: int, value: float) -> None:
        for b in range(tasks.bit_count(), self.size + 1):
            if value > self.lower[b]:
                self.lower[b], self.plans[b] = value, tasks

    def relax(self, deadline: Deadline) -> None:
        """The relaxation is concave in the budget, so a few solutions with their prices bound all budgets."""
        budgets = np.arange(self.size + 1)
        for b in np.unique(np.linspace(0, self.size, _TANGENTS).astype(int)):
            programme = self._model.programme(int(b), {}, integer=False)
            solution = maximise(programme, seconds=deadline.left())
            if solution.values is not None:
                tangent = solution.bound + solution.budget_price * (budgets - b)
                self.upper = np.minimum(self.upper, tangent + 1e-9)

    def refine(self, budget: int, deadline: Deadline, enough: float = 0.0) -> None:
        """Solve for one budget; stops early when no value above `enough` is left."""
        b = min(budget, self.size)
        start = Answer(self.plans[b], float(self.lower[b]), float(self.upper[b]))
        found = self._search.solve(b, deadline, start, enough)
        self._keep(found.tasks, found.value)
        self.upper[: b + 1] = np.minimum(self.upper[: b + 1], found.bound)

    def settled(self, budget: int) -> bool:
        b = min(budget, self.size)
        return bool(self.upper[b] <= self.lower[b] + 2 * slack(float(self.lower[b])))
