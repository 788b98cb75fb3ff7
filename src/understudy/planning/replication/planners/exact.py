"""`exact`: the proven optimum, far beyond the sizes the seed calls out of reach.

The metric becomes an expression. Where its parts share no task, a dynamic programme over budgets solves it;
what is entangled goes to a mixed-integer programme, and products of sums to a branch and bound around it.
"""

from __future__ import annotations

from understudy.planning.replication.deadline import Deadline
from understudy.planning.replication.exact.search import best_plan
from understudy.planning.replication.metrics import Metrics
from understudy.planning.replication.plan import PlanRequest, ReplicationPlan, answer
from understudy.planning.status import Status

OPTIMAL_GAP = 1e-6


def plan(request: PlanRequest) -> ReplicationPlan:
    deadline = Deadline(request.time_limit_s)
    metrics = Metrics(request.problem)
    tasks, bound = best_plan(metrics, request.budget, request.metric, deadline)
    value = metrics.value(metrics.alive(tasks), request.metric)
    if bound - value <= OPTIMAL_GAP * max(value, 1e-3):
        status = Status.OPTIMAL
    else:
        status = Status.FEASIBLE if value > 0 else Status.TIMEOUT
    return answer(
        request, "exact", tasks, status=status, upper_bound=bound, deadline=deadline, metrics=metrics
    )
