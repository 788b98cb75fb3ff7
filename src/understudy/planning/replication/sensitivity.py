"""How much one more, or one less, live task changes a metric: all tasks in one backward pass.

A metric is linear in each single task (as long as no join meets the same task along two ways), so the
derivative is the exact loss or gain of that one change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.metrics import Metric, Metrics, stream_fidelity

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from understudy.planning.replication.flows import Floats, Flow


def sensitivity(metrics: Metrics, alive: ArrayLike, metric: Metric = Metric.FIDELITY) -> Floats:
    network = metrics.network
    joins = metric is Metric.FIDELITY
    live = np.asarray(alive, dtype=np.float64)
    fidelity = metrics.task_fidelity(live, joins=joins)
    wanted = (network.sink_weight if joins else network.input_weight).copy()
    result = np.zeros_like(live)
    for position in reversed(metrics.problem.order):
        first, end = network.bounds[position]
        flows = network.inputs[position]
        streams = [_of_stream(flow, fidelity[slice(*network.bounds[flow.source])]) for flow in flows]
        factors = _factors(flows, streams, network.mix[position], joins and network.correlated[position])
        received = _total(flows, streams, factors, joins and network.correlated[position], end - first)
        result[first:end] = wanted[first:end] * received
        outgoing = wanted[first:end] * live[first:end]
        for flow, factor in zip(flows, factors, strict=True):
            _pass_back(flow, outgoing * factor, wanted[slice(*network.bounds[flow.source])])
    return result


def _of_stream(flow: Flow, upstream: Floats) -> Floats:
    means = np.broadcast_to(stream_fidelity(flow, upstream), flow.total.shape)
    return np.where(flow.present, means, 1.0)


def _factors(flows: tuple[Flow, ...], streams: list[Floats], mix: Floats, correlated: bool) -> list[Floats]:
    """What the fidelity of each stream is multiplied with to become that of the task."""
    if not correlated:
        return list(mix)
    return [
        np.prod([s for j, s in enumerate(streams) if j != k], axis=0) * flow.present
        if len(streams) > 1
        else flow.present.astype(np.float64)
        for k, flow in enumerate(flows)
    ]


def _total(
    flows: tuple[Flow, ...], streams: list[Floats], factors: list[Floats], correlated: bool, size: int
) -> Floats:
    if not flows:
        return np.ones(size)
    if correlated:
        product: Floats = np.prod(streams, axis=0)
        return product
    total: Floats = np.sum([f * s for f, s in zip(factors, streams, strict=True)], axis=0)
    return total


def _pass_back(flow: Flow, wanted: Floats, upstream: Floats) -> None:
    if flow.uniform:
        upstream[flow.up] += flow.weight * wanted.sum()
    else:
        np.add.at(upstream, flow.up, flow.weight * wanted[flow.down])
