"""Fidelity kept up to date while one task at a time fails or comes back.

A change travels downstream only along the streams it reaches: on structured topologies a flip costs a
handful of operations instead of a pass over all tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.metrics import Metric, Metrics, stream_fidelity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from understudy.planning.replication.flows import Floats, Flow, Ints

_MANY = 8  # changed senders above which a pass over the whole stream is cheaper than one by one


class IncrementalValue:
    """The value of one metric for one changing set of live tasks."""

    def __init__(self, metrics: Metrics, alive: NDArray[np.bool_], metric: Metric = Metric.FIDELITY) -> None:
        self._network = metrics.network
        self._order = metrics.problem.order
        self._metrics = metrics
        self._joins = metric is Metric.FIDELITY
        network = metrics.network
        self._weight = network.sink_weight if self._joins else network.input_weight
        self._owner = np.repeat(np.arange(len(network.bounds)), [end - first for first, end in network.bounds])
        self._readers: list[list[tuple[int, int]]] = [[] for _ in network.bounds]
        self._outgoing: dict[tuple[int, int], list[Ints]] = {}
        for position, flows in enumerate(network.inputs):
            for k, flow in enumerate(flows):
                self._readers[flow.source].append((position, k))
                self._outgoing[position, k] = _edges_by_sender(flow, network.bounds[flow.source])
        self.reset(alive)

    def reset(self, alive: NDArray[np.bool_]) -> None:
        """Start again from this set; also clears the rounding errors of very many flips."""
        self.alive = alive.copy()
        self._fidelity = self._metrics.task_fidelity(alive, joins=self._joins)
        self._streams = [
            [
                np.array(np.broadcast_to(stream_fidelity(flow, self._part(flow.source)), flow.total.shape))
                for flow in flows
            ]
            for flows in self._network.inputs
        ]
        self.value = float(self._fidelity @ self._weight)

    def _part(self, position: int) -> Floats:
        first, end = self._network.bounds[position]
        return self._fidelity[first:end]

    def flip(self, task: int) -> float:
        """Kill the task if it is alive, revive it if it is dead; the new value."""
        self.alive[task] = not self.alive[task]
        start = int(self._owner[task])
        local = task - self._network.bounds[start][0]
        pending: dict[int, list[Ints]] = {start: [np.array([local], dtype=np.int64)]}
        for position in self._order:
            if position in pending:
                changed = np.unique(np.concatenate(pending.pop(position)))
                self._update(position, changed, pending)
                if not pending:
                    break
        return self.value

    def value_if(self, tasks: Iterable[int]) -> float:
        """The value with these tasks flipped; nothing stays changed."""
        tasks = list(tasks)
        before = self.value
        for task in tasks:
            self.flip(task)
        after = self.value
        for task in reversed(tasks):
            self.flip(task)
        self.value = before
        return after

    def _update(self, position: int, changed: Ints, pending: dict[int, list[Ints]]) -> None:
        first, _ = self._network.bounds[position]
        new = self.alive[first + changed] * self._received(position, changed)
        delta = new - self._fidelity[first + changed]
        moved = delta != 0
        changed, delta = changed[moved], delta[moved]
        if not len(changed):
            return
        self._fidelity[first + changed] = new[moved]
        self.value += float(delta @ self._weight[first + changed])
        for reader, k in self._readers[position]:
            reached = self._send(reader, k, changed, delta)
            if len(reached):
                pending.setdefault(reader, []).append(reached)

    def _received(self, position: int, tasks: Ints) -> Floats | float:
        flows = self._network.inputs[position]
        if not flows:
            return 1.0
        streams = [stream[tasks] for stream in self._streams[position]]
        if self._joins and self._network.correlated[position]:
            product = np.ones(len(tasks))
            for flow, stream in zip(flows, streams, strict=True):
                product = product * np.where(flow.present[tasks], stream, 1.0)
            return product
        return np.asarray(sum(w[tasks] * s for w, s in zip(self._network.mix[position], streams, strict=True)))

    def _send(self, reader: int, k: int, changed: Ints, delta: Floats) -> Ints:
        flow, stream = self._network.inputs[reader][k], self._streams[reader][k]
        if flow.uniform or len(changed) > _MANY:
            stream[:] = stream_fidelity(flow, self._part(flow.source))
            return np.arange(len(stream))
        outgoing = self._outgoing[reader, k]
        reached = []
        for i, d in zip(changed, delta, strict=True):
            edges = outgoing[i]
            stream[flow.down[edges]] += flow.weight[edges] * d
            reached.append(flow.down[edges])
        return np.concatenate(reached)


def _edges_by_sender(flow: Flow, bounds: tuple[int, int]) -> list[Ints]:
    size = bounds[1] - bounds[0]
    order = np.argsort(flow.up, kind="stable")
    ends = np.cumsum(np.bincount(flow.up, minlength=size))
    return [np.sort(part) for part in np.split(order, ends[:-1])]
