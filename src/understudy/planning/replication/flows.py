"""A problem as arrays: who feeds whom, with which weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.problem import Partitioning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from understudy.planning.replication.problem import Operator, ReplicationProblem, Stream

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Flow:
    """One stream. Edges are sorted by `down`; the weights of the edges into one task add up to 1.

    A `uniform` flow brings the same mix to every reader (all of `full`, anything into one task):
    its edges are kept once, for all readers, so 5,000 x 5,000 tasks cost 5,000 numbers.
    """

    source: int
    target: int
    uniform: bool
    up: Ints
    down: Ints
    weight: Floats
    total: Floats  # input rate of each downstream task
    present: NDArray[np.bool_]  # which downstream tasks read this stream at all
    starts: Ints  # first edge of each present downstream task


@dataclass(frozen=True, eq=False)
class Network:
    problem: ReplicationProblem
    bounds: tuple[tuple[int, int], ...]  # first and last+1 task of each operator
    inputs: tuple[tuple[Flow, ...], ...]  # per operator
    mix: tuple[Floats, ...]  # per operator: weight of each input stream in each task, columns add up to 1
    sink_weight: Floats  # per task; adds up to 1
    input_weight: Floats  # per task: its part of all rows processed anywhere; adds up to 1

    @property
    def correlated(self) -> tuple[bool, ...]:
        return tuple(op.correlated for op in self.problem.operators)


def network_of(problem: ReplicationProblem) -> Network:
    inputs = tuple(tuple(_flow(problem, stream) for stream in problem.inputs_of(op.name)) for op in problem.operators)
    bounds = tuple(zip(problem.offsets, problem.offsets[1:], strict=False))
    sinks, received = np.zeros(problem.task_count), np.zeros(problem.task_count)
    for op, (first, end), flows in zip(problem.operators, bounds, inputs, strict=True):
        received[first:end] = np.sum([flow.total for flow in flows], axis=0) if flows else op.rates
        if op.name in problem.sinks:
            sinks[first:end] = op.rates
    is_sink = np.repeat([op.name in problem.sinks for op in problem.operators], [e - f for f, e in bounds])
    return Network(
        problem=problem,
        bounds=bounds,
        inputs=inputs,
        mix=tuple(_mix(flows, end - first) for flows, (first, end) in zip(inputs, bounds, strict=True)),
        sink_weight=_normalised(sinks, is_sink),
        input_weight=_normalised(received, np.ones(problem.task_count, dtype=bool)),
    )


def _normalised(values: Floats, where: NDArray[np.bool_]) -> Floats:
    """Where every rate is 0, all tasks count alike."""
    total = values.sum()
    result: Floats = values / total if total > 0 else where / max(int(where.sum()), 1)
    return result


def _mix(flows: tuple[Flow, ...], size: int) -> Floats:
    if not flows:
        return np.zeros((0, size))
    totals = np.stack([flow.total for flow in flows])
    present = np.stack([flow.present for flow in flows])
    rate = totals.sum(axis=0)
    even = present / np.maximum(present.sum(axis=0), 1)
    mix: Floats = np.where(rate > 0, totals / np.where(rate > 0, rate, 1.0), even)
    return mix


def _flow(problem: ReplicationProblem, stream: Stream) -> Flow:
    source, target = problem.positions[stream.source], problem.positions[stream.target]
    sender, reader = problem.operators[source], problem.operators[target]
    rates = np.asarray(sender.rates, dtype=np.float64)
    if stream.shares is None and stream.partitioning is Partitioning.FULL:
        return _uniform(source, target, rates, np.full(len(reader.rates), rates.sum() / len(reader.rates)))
    up, down, share = _edges(stream, sender, reader)
    rate = rates[up] * share
    size = len(reader.rates)
    total: Floats = np.bincount(down, weights=rate, minlength=size).astype(np.float64)
    # A stream that carries nothing still has to have a loss: its senders then count by share alone.
    shares = np.bincount(down, weights=share, minlength=size)
    silent = total[down] == 0
    weight = np.where(silent, share / shares[down], rate / np.where(silent, 1.0, total[down]))
    if size == 1 or len(sender.rates) == 1:
        dense = np.zeros(len(sender.rates))
        dense[up] = weight
        if size == 1 or len(down) == size:
            return _uniform(source, target, dense, total)
    order = np.argsort(down, kind="stable")
    up, down, weight = up[order], down[order], weight[order]
    present = shares > 0
    starts = np.searchsorted(down, np.flatnonzero(present))
    return Flow(source, target, False, up, down, weight, total, present, starts)


def _uniform(source: int, target: int, weight: Floats, total: Floats) -> Flow:
    weight = _normalised(weight, np.ones(len(weight), dtype=bool))
    kept = np.flatnonzero(weight > 0)
    empty = np.zeros(0, dtype=np.int64)
    everyone = np.ones(len(total), dtype=bool)
    return Flow(source, target, True, kept, empty, weight[kept], total, everyone, empty)


def _edges(stream: Stream, sender: Operator, reader: Operator) -> tuple[Ints, Ints, Floats]:
    """Upstream task, downstream task and the part of the sender's rate that takes this way."""
    n1, n2 = len(sender.rates), len(reader.rates)
    if stream.shares is not None:
        shares = np.asarray(stream.shares, dtype=np.float64)
        shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        up, down = np.nonzero(shares)
        return up, down, shares[up, down]
    if stream.partitioning is Partitioning.MERGE:
        up = np.arange(n1)
        return up, up * n2 // n1, np.ones(n1)
    down = np.arange(n2)
    up = down * n1 // n2  # one-to-one is the case n1 = n2
    readers = np.bincount(up, minlength=n1)
    return up, down, 1.0 / readers[up]
