"""`dynamic` (Su and Zhou 2016, §IV-A, Algorithm 1): grow plans tree by tree; optimal, exponential.

We had the prose of the algorithm, not its listing. At every usage u, each candidate plan is extended by
each tree that brings exactly u - |plan| new tasks. A candidate is dropped once no tree could still extend it.
Starting from the empty plan gives the first candidates (one tree each) without a special case, also where
trees have different sizes. It grows with the number of trees, so it gives up on time or on memory.

For internal completeness the result is only a good plan: replicas that complete no tree count there too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.bounds import quick_bound
from understudy.planning.replication.deadline import Deadline
from understudy.planning.replication.mc_trees import enumerate_trees
from understudy.planning.replication.metrics import Metric, Metrics
from understudy.planning.replication.plan import PlanRequest, ReplicationPlan, answer
from understudy.planning.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_TREES = 20_000
_MOST_PLANS = 400_000


class _GaveUp(Exception):
    pass


def plan(request: PlanRequest) -> ReplicationPlan:
    deadline = Deadline(request.time_limit_s)
    metrics = Metrics(request.problem)
    seen: dict[int, None] = {0: None}
    try:
        _grow(seen, _trees(request, deadline), request.budget, deadline)
        finished = True
    except _GaveUp:
        finished = False
    best, value = _best(seen, metrics, request.metric)
    proven = finished and request.metric is Metric.FIDELITY
    status = Status.OPTIMAL if proven else Status.FEASIBLE if value > 0 or finished else Status.TIMEOUT
    bound = value if proven else quick_bound(request)
    return answer(
        request, "dynamic", _tasks(best), status=status, upper_bound=bound, deadline=deadline, metrics=metrics
    )


def _trees(request: PlanRequest, deadline: Deadline) -> list[int]:
    trees: dict[int, None] = {}
    for number, tree in enumerate(enumerate_trees(request.problem)):
        if number % 256 == 0 and (deadline.over() or len(trees) > _MOST_TREES):
            raise _GaveUp
        if len(tree) <= request.budget:
            trees[sum(1 << task for task in tree)] = None
    return list(trees)


def _grow(seen: dict[int, None], trees: list[int], budget: int, deadline: Deadline) -> None:
    active = [0]
    for usage in range(1, budget + 1):
        kept, born = [], []
        for candidate in active:
            if deadline.over() or len(seen) > _MOST_PLANS:
                raise _GaveUp
            wanted = usage - candidate.bit_count()
            furthest = 0
            for tree in trees:
                new = (tree & ~candidate).bit_count()
                furthest = max(furthest, new)
                if new == wanted and (candidate | tree) not in seen:
                    seen[candidate | tree] = None
                    born.append(candidate | tree)
            if furthest > wanted:
                kept.append(candidate)
        active = kept + born


def _best(seen: Iterable[int], metrics: Metrics, metric: Metric) -> tuple[int, float]:
    plans = list(seen)
    best, value = 0, 0.0
    for start in range(0, len(plans), 2048):
        batch = plans[start : start + 2048]
        width = (metrics.problem.task_count + 7) // 8
        packed = np.array([list(p.to_bytes(width, "little")) for p in batch], dtype=np.uint8)
        alive = np.unpackbits(packed, axis=1, bitorder="little")[:, : metrics.problem.task_count]
        values = metrics.values(alive.astype(bool), metric)
        top = int(values.argmax())
        if values[top] > value:
            best, value = batch[top], float(values[top])
    return best, value


def _tasks(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
