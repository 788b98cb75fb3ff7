"""Information loss, output fidelity and internal completeness (Su and Zhou 2016, §III-A).

We keep fidelity = 1 - loss. Of a task that is alive, with the numbers of the paper's equations:

* an input stream has the mean fidelity of its substreams, weighted by their rates (1);
* correlated inputs multiply (2), independent inputs are averaged by rate (3);
* the output fidelity is the mean over the tasks of the sinks, weighted by their rates (4).

A dead task has fidelity 0. Internal completeness has no formula in the paper; from its prose it is the
fraction of rows that all tasks together still process, with joins counted like unions: rows reach a
join whether or not they find a partner there. A source processes its own output rate.

>>> from understudy.planning.replication.problem import Operator, ReplicationProblem, Stream
>>> operators = Operator("in", (1.0, 3.0)), Operator("out", (4.0,))
>>> problem = ReplicationProblem(operators, (Stream("in", "out"),))
>>> Metrics(problem).output_fidelity([False, True, True])
0.75
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from understudy.errors import InvalidInput
from understudy.planning.replication.flows import Flow, network_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    from understudy.planning.replication.flows import Floats
    from understudy.planning.replication.problem import ReplicationProblem


class Metric(StrEnum):
    FIDELITY = "fidelity"
    COMPLETENESS = "completeness"


def parse_metric(name: str) -> Metric:
    try:
        return Metric(name)
    except ValueError as error:
        raise InvalidInput(
            f"there is no metric called {name}",
            why="a plan maximises one metric",
            fix=f"use one of {', '.join(Metric)}",
        ) from error


class Metrics:
    """Evaluates sets of live tasks; the last axis of `alive` is the task, any axes before it are a batch."""

    def __init__(self, problem: ReplicationProblem) -> None:
        self.problem = problem
        self.network = network_of(problem)

    def alive(self, tasks: Iterable[int]) -> NDArray[np.bool_]:
        mask = np.zeros(self.problem.task_count, dtype=bool)
        mask[list(tasks)] = True
        return mask

    def task_fidelity(self, alive: ArrayLike, *, joins: bool = True) -> Floats:
        """Fidelity of every task's output; `joins=False` treats correlated inputs as independent."""
        live = np.asarray(alive, dtype=np.float64)
        fidelity = np.zeros_like(live)
        for position in self.problem.order:
            first, end = self.network.bounds[position]
            fidelity[..., first:end] = live[..., first:end] * self._received(position, fidelity, joins)
        return fidelity

    def _received(self, position: int, fidelity: Floats, joins: bool) -> Floats | float:
        flows = self.network.inputs[position]
        if not flows:
            return 1.0
        streams = [stream_fidelity(flow, self._of(flow.source, fidelity)) for flow in flows]
        if joins and self.network.correlated[position]:
            product = np.ones(1)
            for flow, stream in zip(flows, streams, strict=True):
                product = product * np.where(flow.present, stream, 1.0)
            return product
        mix = self.network.mix[position]
        mean: Floats = mix[0] * streams[0]
        for weight, stream in zip(mix[1:], streams[1:], strict=True):
            mean = mean + weight * stream
        return mean

    def _of(self, position: int, fidelity: Floats) -> Floats:
        first, end = self.network.bounds[position]
        return fidelity[..., first:end]

    def output_fidelities(self, alive: ArrayLike) -> Floats:
        """One number per row of the batch."""
        result: Floats = self.task_fidelity(alive) @ self.network.sink_weight
        return result

    def internal_completenesses(self, alive: ArrayLike) -> Floats:
        result: Floats = self.task_fidelity(alive, joins=False) @ self.network.input_weight
        return result

    def values(self, alive: ArrayLike, metric: Metric) -> Floats:
        return self.output_fidelities(alive) if metric is Metric.FIDELITY else self.internal_completenesses(alive)

    def output_fidelity(self, alive: ArrayLike) -> float:
        return float(self.output_fidelities(alive))

    def internal_completeness(self, alive: ArrayLike) -> float:
        return float(self.internal_completenesses(alive))

    def value(self, alive: ArrayLike, metric: Metric) -> float:
        return float(self.values(alive, metric))


def stream_fidelity(flow: Flow, upstream: Floats) -> Floats:
    """Equation 1 for every task that reads the stream; 0 for those that do not."""
    weighted = upstream[..., flow.up] * flow.weight
    if flow.uniform:
        total: Floats = weighted.sum(axis=-1, keepdims=True)
        return total
    means = np.zeros((*upstream.shape[:-1], len(flow.total)))
    means[..., flow.present] = np.add.reduceat(weighted, flow.starts, axis=-1)
    return means
