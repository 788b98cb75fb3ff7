"""The expression of a metric for a problem: one term per task, upstream first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.planning.replication.exact.expressions import Algebra, Term
from understudy.planning.replication.metrics import Metric

if TYPE_CHECKING:
    from understudy.planning.replication.flows import Flow, Network


def expression_of(network: Network, metric: Metric, algebra: Algebra) -> Term:
    tasks: list[Term] = [Term(0.0, 0)] * network.problem.task_count
    joins = metric is Metric.FIDELITY
    for position in network.problem.order:
        first, end = network.bounds[position]
        received = _received(network, position, tasks, algebra, joins)
        for i in range(end - first):
            tasks[first + i] = algebra.product((Term(1.0, 1 << (first + i)), received[i]))
    weights = network.sink_weight if joins else network.input_weight
    return algebra.sum(_scaled(task, weight) for task, weight in zip(tasks, weights, strict=True))


def _received(network: Network, position: int, tasks: list[Term], algebra: Algebra, joins: bool) -> list[Term]:
    first, end = network.bounds[position]
    flows = network.inputs[position]
    streams = [_stream(flow, network.bounds[flow.source][0], tasks, algebra) for flow in flows]
    if not flows:
        return [Term(1.0, 0)] * (end - first)
    if joins and network.problem.operators[position].correlated:
        return [
            algebra.product(s[i] for s, flow in zip(streams, flows, strict=True) if flow.present[i])
            for i in range(end - first)
        ]
    if len(flows) == 1:
        return streams[0]
    mix = network.mix[position]
    uniform = [k for k, flow in enumerate(flows) if flow.uniform]
    apart = [k for k in range(len(flows)) if k not in uniform]
    result = []
    for i in range(end - first):
        # What comes the same to all readers is one sum of its own, so that all of them share it.
        scalar = algebra.mark_scalars(algebra.sum(_scaled(streams[k][i], mix[k][i]) for k in uniform))
        result.append(algebra.sum([scalar, *(_scaled(streams[k][i], mix[k][i]) for k in apart)]))
    return result


def _scaled(term: Term, weight: float) -> Term:
    return term._replace(coefficient=term.coefficient * float(weight))


def _stream(flow: Flow, start: int, tasks: list[Term], algebra: Algebra) -> list[Term]:
    def weighted(edges: range) -> list[Term]:
        return [_scaled(tasks[start + int(flow.up[e])], flow.weight[e]) for e in edges]

    if flow.uniform:
        mean = algebra.sum(weighted(range(len(flow.up))))
        return [algebra.mark_scalars(mean) if len(flow.total) > 1 else mean] * len(flow.total)
    result = [Term(0.0, 0)] * len(flow.total)
    ends = [*flow.starts[1:].tolist(), len(flow.up)]
    readers = [i for i, present in enumerate(flow.present) if present]
    for reader, begin, stop in zip(readers, flow.starts.tolist(), ends, strict=True):
        result[reader] = algebra.sum(weighted(range(begin, stop)))
    return result
