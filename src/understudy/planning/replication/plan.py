"""What a planner gets and what it returns, the same for all planners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from understudy.errors import InvalidInput
from understudy.planning.replication.metrics import Metric, Metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.planning.replication.deadline import Deadline
    from understudy.planning.replication.problem import ReplicationProblem
    from understudy.planning.status import Status


@dataclass(frozen=True)
class PlanRequest:
    problem: ReplicationProblem
    budget: int
    metric: Metric = Metric.FIDELITY
    time_limit_s: float = 60.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.budget < 0 or self.time_limit_s <= 0:
            raise InvalidInput(
                f"a budget of {self.budget} replicas in {self.time_limit_s} s cannot be planned",
                why="the budget is a number of tasks, the time limit a number of seconds",
                fix="use a budget of 0 or more and a time limit above 0",
            )


@dataclass(frozen=True)
class ReplicationPlan:
    """`upper_bound` limits the requested metric: no plan within the budget exceeds it.

    `optimal`: proven. `feasible`: a valid plan without a proof. `timeout`: time ran out before anything
    useful was found. The empty plan is always allowed, so nothing is ever infeasible.
    """

    algorithm: str
    budget: int
    metric: Metric
    status: Status
    replicas: tuple[str, ...]
    output_fidelity: float
    internal_completeness: float
    upper_bound: float
    seconds: float

    @property
    def value(self) -> float:
        return self.output_fidelity if self.metric is Metric.FIDELITY else self.internal_completeness

    def to_data(self) -> dict[str, Any]:
        return {
            "algorithm": self.algorithm,
            "budget": self.budget,
            "metric": str(self.metric),
            "status": str(self.status),
            "replicas": list(self.replicas),
            "output_fidelity": self.output_fidelity,
            "internal_completeness": self.internal_completeness,
            "upper_bound": self.upper_bound,
            "seconds": round(self.seconds, 6),
        }


Planner = Callable[[PlanRequest], ReplicationPlan]


def answer(
    request: PlanRequest,
    algorithm: str,
    tasks: Iterable[int],
    *,
    status: Status,
    upper_bound: float,
    deadline: Deadline,
    metrics: Metrics | None = None,
) -> ReplicationPlan:
    """Builds the result of a planner; measures the plan here, so that no planner reports figures of its own."""
    metrics = metrics or Metrics(request.problem)
    chosen = sorted(set(tasks))
    alive = metrics.alive(chosen)
    fidelity, completeness = metrics.output_fidelity(alive), metrics.internal_completeness(alive)
    value = fidelity if request.metric is Metric.FIDELITY else completeness
    return ReplicationPlan(
        algorithm=algorithm,
        budget=request.budget,
        metric=request.metric,
        status=status,
        replicas=tuple(request.problem.tasks[i] for i in chosen),
        output_fidelity=fidelity,
        internal_completeness=completeness,
        upper_bound=max(upper_bound, value),
        seconds=deadline.elapsed(),
    )
