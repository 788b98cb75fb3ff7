"""Checks a plan independently of the planner that made it.

The fidelity is computed again here, task by task with plain recursion, sharing no code with the metrics.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from understudy.planning.replication.metrics import Metric
from understudy.planning.replication.problem import Partitioning
from understudy.planning.status import Status

if TYPE_CHECKING:
    from understudy.planning.replication.plan import ReplicationPlan
    from understudy.planning.replication.problem import ReplicationProblem, Stream

_CLOSE = 1e-6


def problems_with(problem: ReplicationProblem, plan: ReplicationPlan) -> list[str]:
    """One sentence for each thing that is wrong; an empty list means the plan is sound."""
    found = [f"{name} is not a task" for name in plan.replicas if name not in problem.task_numbers]
    found += [f"{name} is replicated {n} times" for name, n in Counter(plan.replicas).items() if n > 1]
    if len(plan.replicas) > plan.budget:
        found.append(f"{len(plan.replicas)} replicas exceed the budget of {plan.budget}")
    if found:
        return found
    fidelity, completeness = recount(problem, set(plan.replicas))
    if abs(fidelity - plan.output_fidelity) > _CLOSE:
        found.append(f"the output fidelity is {fidelity:.9f}, not {plan.output_fidelity:.9f}")
    if abs(completeness - plan.internal_completeness) > _CLOSE:
        found.append(f"the internal completeness is {completeness:.9f}, not {plan.internal_completeness:.9f}")
    value = fidelity if plan.metric is Metric.FIDELITY else completeness
    if plan.upper_bound < value - _CLOSE:
        found.append(f"the upper bound {plan.upper_bound:.9f} is below the value {value:.9f}")
    if plan.status is Status.OPTIMAL and plan.upper_bound > value + _CLOSE:
        found.append(f"called optimal, but up to {plan.upper_bound:.9f} is not excluded")
    if plan.status is Status.INFEASIBLE:
        found.append("called infeasible, but the empty plan is always allowed")
    return found


def recount(problem: ReplicationProblem, alive: set[str]) -> tuple[float, float]:
    """Output fidelity and internal completeness when only these tasks are alive."""
    check = _Recount(problem, alive)
    return check.output_fidelity(), check.internal_completeness()


class _Recount:
    def __init__(self, problem: ReplicationProblem, alive: set[str]) -> None:
        self._problem = problem
        self._alive = alive
        self._rates = {op.name: op.rates for op in problem.operators}
        self._known: dict[tuple[str, int, bool], float] = {}

    def output_fidelity(self) -> float:
        weighted = [
            (rate, self._fidelity(name, i, True))
            for name in self._problem.sinks
            for i, rate in enumerate(self._rates[name])
        ]
        return _mean(weighted)

    def internal_completeness(self) -> float:
        weighted = []
        for op in self._problem.operators:
            inputs = self._problem.inputs_of(op.name)
            for i, rate in enumerate(op.rates):
                received = sum(r for s in inputs for r, _ in self._substreams(s, i)) if inputs else rate
                weighted.append((received, self._fidelity(op.name, i, False)))
        return _mean(weighted)

    def _fidelity(self, name: str, task: int, joins: bool) -> float:
        if f"{name}[{task}]" not in self._alive:
            return 0.0
        if (name, task, joins) not in self._known:
            self._known[name, task, joins] = self._received(name, task, joins)
        return self._known[name, task, joins]

    def _received(self, name: str, task: int, joins: bool) -> float:
        streams = []
        for stream in self._problem.inputs_of(name):
            parts = self._substreams(stream, task)
            if parts:
                means = [(rate, self._fidelity(stream.source, up, joins)) for rate, up in parts]
                shares = [self._share(stream, up, task) for _, up in parts]
                streams.append((sum(rate for rate, _ in means), _mean(means, shares)))
        if not streams:
            return 1.0
        operator = self._problem.operators[self._problem.positions[name]]
        if operator.correlated and joins:
            product = 1.0
            for _, fidelity in streams:
                product *= fidelity
            return product
        return _mean(streams)

    def _substreams(self, stream: Stream, task: int) -> list[tuple[float, int]]:
        """Rate and upstream task of everything this task reads from the stream."""
        rates = self._rates[stream.source]
        shares = [(self._share(stream, up, task), up) for up in range(len(rates))]
        return [(rates[up] * share, up) for share, up in shares if share > 0]

    def _share(self, stream: Stream, up: int, down: int) -> float:
        n1, n2 = len(self._rates[stream.source]), len(self._rates[stream.target])
        if stream.shares is not None:
            total = sum(stream.shares[up])
            return stream.shares[up][down] / total if total else 0.0
        match stream.partitioning:
            case Partitioning.FULL:
                return 1.0 / n2
            case Partitioning.MERGE:
                return 1.0 if up * n2 // n1 == down else 0.0
            case _:
                readers = [j for j in range(n2) if j * n1 // n2 == up]
                return 1.0 / len(readers) if down in readers else 0.0


def _mean(weighted: list[tuple[float, float]], silent_weights: list[float] | None = None) -> float:
    """Without any rate, tasks count by their shares, or all the same."""
    total = sum(weight for weight, _ in weighted)
    if total > 0:
        return sum(weight * value for weight, value in weighted) / total
    weights = silent_weights or [1.0] * len(weighted)
    return sum(w * value for w, (_, value) in zip(weights, weighted, strict=True)) / sum(weights)
