"""`exact`: the proven optimum, far beyond the sizes that Su and Zhou 2016, §VI-C, call out of reach.

The metric becomes an expression. Where its parts share no task, a dynamic programme over budgets solves it;
what is entangled goes to a mixed-integer programme, and products of sums to a branch and bound around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.planning.replication.deadline import Deadline
from understudy.planning.replication.exact.search import best_plan
from understudy.planning.replication.metrics import Metrics
from understudy.planning.replication.plan import PlanRequest, ReplicationPlan, answer
from understudy.planning.replication.sensitivity import sensitivity
from understudy.planning.status import Status

if TYPE_CHECKING:
    from understudy.planning.replication.metrics import Metric

OPTIMAL_GAP = 1e-6


def plan(request: PlanRequest) -> ReplicationPlan:
    deadline = Deadline(request.time_limit_s)
    metrics = Metrics(request.problem)
    tasks, bound = best_plan(metrics, request.budget, request.metric, deadline)
    tasks = _useful(metrics, tasks, request.metric)
    value = metrics.value(metrics.alive(tasks), request.metric)
    if bound - value <= OPTIMAL_GAP * max(value, 1e-3):
        status = Status.OPTIMAL
    else:
        status = Status.FEASIBLE if value > 0 else Status.TIMEOUT
    return answer(request, "exact", tasks, status=status, upper_bound=bound, deadline=deadline, metrics=metrics)


def _useful(metrics: Metrics, tasks: list[int], metric: Metric) -> list[int]:
    """Without replicas that complete no tree. Each contributes nothing, so all can go at once."""
    change = sensitivity(metrics, metrics.alive(tasks), metric)
    return [task for task in tasks if change[task] > 0]
