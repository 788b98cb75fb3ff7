"""`random`: random tasks; the baseline for the other planners."""

from __future__ import annotations

import numpy as np

from understudy.planning.replication.bounds import quick_bound
from understudy.planning.replication.deadline import Deadline
from understudy.planning.replication.plan import PlanRequest, ReplicationPlan, answer
from understudy.planning.status import Status


def plan(request: PlanRequest) -> ReplicationPlan:
    deadline = Deadline(request.time_limit_s)
    rng = np.random.default_rng(request.seed)
    size = min(request.budget, request.problem.task_count)
    tasks = rng.choice(request.problem.task_count, size, replace=False).tolist()
    bound = quick_bound(request)
    return answer(request, "random", tasks, status=Status.FEASIBLE, upper_bound=bound, deadline=deadline)
