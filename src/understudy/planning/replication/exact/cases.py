"""Branch and bound over cases: shared tasks and sums are decided until nothing is entangled any more."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from understudy.planning.replication.bounds import BoundBook
from understudy.planning.replication.exact.boxes import Answer, slack
from understudy.planning.replication.exact.curves import CurveBook
from understudy.planning.replication.exact.tangles import tangle_in

if TYPE_CHECKING:
    from understudy.planning.replication.deadline import Deadline
    from understudy.planning.replication.exact.expressions import Algebra, Term

_EFFORT = 12  # cases a node may try at once before it is split


def search_cases(algebra: Algebra, term: Term, budget: int, start: Answer, deadline: Deadline) -> Answer:
    """Best bound first; a node is what is left of the expression, the budget left and the tasks taken."""
    curves = CurveBook(algebra, budget, _EFFORT)
    bounds = BoundBook(algebra, budget)
    best = start
    queue: list[tuple[float, int, Term, int, int]] = [(-start.bound, 0, term, budget, 0)]
    number = 0
    while queue and -queue[0][0] > best.value + slack(best.value) and not deadline.over():
        _, _, rest, left, taken = heapq.heappop(queue)
        curve = curves.of_term(rest)
        if curve is not None:
            if curve.at(left) > best.value:
                best = Answer(taken | curve.tasks(left), curve.at(left), start.bound)
            continue
        parts = tangle_in(algebra, rest)
        for cost, tasks, case in curves.cases(rest, parts or []):
            if cost <= left:
                bound = bounds.of_term(case, left - cost)
                if bound > best.value + slack(best.value):
                    number += 1
                    heapq.heappush(queue, (-bound, number, case, left - cost, taken | tasks))
    top = -queue[0][0] if queue else best.value
    return Answer(best.tasks, best.value, max(best.value, min(top, start.bound)))
