"""`greedy` (Su and Zhou 2016, §IV-B, Algorithm 2): replicate the tasks whose failure alone hurts most.

It ignores whether its tasks form complete trees, so it does badly with small budgets.
"""

from __future__ import annotations

import numpy as np

from understudy.planning.replication.bounds import quick_bound
from understudy.planning.replication.deadline import Deadline
from understudy.planning.replication.metrics import Metrics
from understudy.planning.replication.plan import PlanRequest, ReplicationPlan, answer
from understudy.planning.status import Status

_AT_ONCE = 256  # failures evaluated in one batch: bounds memory, not results


def plan(request: PlanRequest) -> ReplicationPlan:
    deadline = Deadline(request.time_limit_s)
    metrics = Metrics(request.problem)
    count = request.problem.task_count
    left = np.empty(count)
    for start in range(0, count, _AT_ONCE):
        failed = np.arange(start, min(start + _AT_ONCE, count))
        alive = np.ones((len(failed), count), dtype=bool)
        alive[np.arange(len(failed)), failed] = False
        left[failed] = metrics.values(alive, request.metric)
    # Rounded: two failures that hurt the same are ranked by position, not by the last digit.
    tasks = np.argsort(np.round(left, 12), kind="stable")[: request.budget].tolist()
    bound = quick_bound(request)
    return answer(
        request,
        "greedy",
        tasks,
        status=Status.FEASIBLE,
        upper_bound=bound,
        deadline=deadline,
        metrics=metrics,
    )
