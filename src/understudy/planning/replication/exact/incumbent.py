"""A good plan to start from: take everything, give up what hurts least, then swap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.sensitivity import sensitivity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from understudy.planning.replication.deadline import Deadline
    from understudy.planning.replication.metrics import Metric, Metrics

_WIDTH = 10


def good_plan(metrics: Metrics, budget: int, metric: Metric, deadline: Deadline) -> NDArray[np.bool_]:
    alive = np.ones(metrics.problem.task_count, dtype=bool)
    while alive.sum() > budget and not deadline.over():
        loss = np.where(alive, sensitivity(metrics, alive, metric), np.inf)
        useless = np.flatnonzero(loss <= 1e-15)[: int(alive.sum()) - budget]
        alive[useless if len(useless) else [int(loss.argmin())]] = False
    if alive.sum() > budget:  # out of time: any part of it is a plan
        alive[np.flatnonzero(alive)[budget:]] = False
    return improved(metrics, alive, budget, metric, deadline)


def improved(
    metrics: Metrics, alive: NDArray[np.bool_], budget: int, metric: Metric, deadline: Deadline
) -> NDArray[np.bool_]:
    """Exchange one task for another while that helps; only the most promising pairs are tried."""
    value = metrics.value(alive, metric)
    while not deadline.over():
        change = sensitivity(metrics, alive, metric)
        outside = np.flatnonzero(~alive)
        adds = outside[np.argsort(-change[outside], kind="stable")[:_WIDTH]]
        inside = np.flatnonzero(alive)
        drops = inside[np.argsort(change[inside], kind="stable")[:_WIDTH]]
        trials = _swaps(alive, adds, drops, spare=int(alive.sum()) < budget)
        if not len(trials):
            break
        values = metrics.values(trials, metric)
        best = int(values.argmax())
        if values[best] <= value * (1 + 1e-12):
            break
        alive, value = trials[best], float(values[best])
    return alive


def _swaps(
    alive: NDArray[np.bool_], adds: NDArray[np.int64], drops: NDArray[np.int64], *, spare: bool
) -> NDArray[np.bool_]:
    trials = []
    for add in adds:
        for drop in [None] if spare else drops:
            trial = alive.copy()
            trial[add] = True
            if drop is not None:
                trial[drop] = False
            trials.append(trial)
    return np.array(trials, dtype=bool).reshape(len(trials), len(alive))
