"""Minimal complete trees (Su and Zhou 2016, §III-B): what must be alive together for anything to reach a sink.

A tree holds a task of a sink; below an independent task one task that feeds it, below a correlated task
one task of each of its input streams, down to the sources. Where one operator feeds a join along two
ways, its tasks are chosen once per way: trees are those of the unfolded topology, so the number listed
equals the number counted, and two trees may hold the same set of tasks.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from understudy.planning.replication.flows import Network, network_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from understudy.planning.replication.problem import ReplicationProblem

    Choices = tuple[tuple[tuple[int, ...], ...], ...]


def feeders(network: Network) -> Choices:
    """For each task and each of its input streams: the tasks that feed it."""
    result: list[tuple[tuple[int, ...], ...]] = []
    for position, (first, end) in enumerate(network.bounds):
        per_stream: list[list[list[int]]] = []
        for flow in network.inputs[position]:
            start = network.bounds[flow.source][0]
            lists: list[list[int]] = [[] for _ in range(end - first)]
            if flow.uniform:
                lists = [[start + int(i) for i in flow.up]] * (end - first)
            else:
                for up, down in zip(flow.up, flow.down, strict=True):
                    lists[down].append(start + int(up))
            per_stream.append(lists)
        result += [tuple(tuple(lists[i]) for lists in per_stream if lists[i]) for i in range(end - first)]
    return tuple(result)


def count(problem: ReplicationProblem) -> int:
    """Sums and products over the tasks, upstream first: no tree is built."""
    network = network_of(problem)
    trees = [0] * problem.task_count
    for position in problem.order:
        first, end = network.bounds[position]
        flows = network.inputs[position]
        totals = [_stream_counts(trees, network, flow_index, position) for flow_index in range(len(flows))]
        for i in range(end - first):
            reached = [total[i] for total, flow in zip(totals, flows, strict=True) if flow.present[i]]
            trees[first + i] = _combine(reached, problem.operators[position].correlated)
    return sum(trees[task] for name in problem.sinks for task in range(*network.bounds[problem.positions[name]]))


MOST_LISTED = 20_000


def smallest_tree(problem: ReplicationProblem) -> tuple[frozenset[int], bool]:
    """The fewest tasks that keep output alive together, and whether that is proven.

    Where the trees are too many to be listed, the branches below every task are chosen one by one: the result is a
    tree, and only where branches share tasks there may be a smaller one.
    """
    if count(problem) <= MOST_LISTED:
        return min(enumerate_trees(problem), key=lambda tree: (len(tree), sorted(tree))), True
    network = network_of(problem)
    below = feeders(network)
    correlated = [op.correlated for op in problem.operators for _ in op.rates]
    best: dict[int, frozenset[int]] = {}
    for position in problem.order:
        for task in range(*network.bounds[position]):
            branches = [min((best[up] for up in stream), key=len) for stream in below[task]]
            if branches and not correlated[task]:
                branches = [min(branches, key=len)]
            best[task] = frozenset({task}).union(*branches)
    sinks = [task for name in problem.sinks for task in range(*network.bounds[problem.positions[name]])]
    return min((best[task] for task in sinks), key=len), False


def _combine(reached: list[int], correlated: bool) -> int:
    if not reached:
        return 1
    if not correlated:
        return sum(reached)
    result = 1
    for number in reached:
        result *= number
    return result


def _stream_counts(trees: list[int], network: Network, index: int, position: int) -> list[int]:
    flow = network.inputs[position][index]
    start = network.bounds[flow.source][0]
    if flow.uniform:
        return [sum(trees[start + int(i)] for i in flow.up)] * len(flow.total)
    totals = [0] * len(flow.total)
    for up, down in zip(flow.up, flow.down, strict=True):
        totals[down] += trees[start + int(up)]
    return totals


def enumerate_trees(problem: ReplicationProblem) -> Iterator[frozenset[int]]:
    """The trees one by one, as sets of task numbers; stop whenever enough were seen."""
    network = network_of(problem)
    below = feeders(network)
    correlated = [op.correlated for op in problem.operators for _ in op.rates]
    for name in problem.sinks:
        for task in range(*network.bounds[problem.positions[name]]):
            yield from trees_of(task, below, correlated)


def trees_of(task: int, below: Choices, correlated: list[bool]) -> Iterator[frozenset[int]]:
    root = frozenset((task,))
    streams = below[task]
    if not streams:
        yield root
    elif correlated[task] and len(streams) > 1:
        yield from _joined(root, streams, below, correlated)
    else:
        for stream in streams:
            for feeder in stream:
                for tree in trees_of(feeder, below, correlated):
                    yield root | tree


def _joined(
    root: frozenset[int], streams: tuple[tuple[int, ...], ...], below: Choices, correlated: list[bool]
) -> Iterator[frozenset[int]]:
    """One feeder per stream; the trees below are walked anew for each choice, so memory stays small."""
    if not streams:
        yield root
        return
    for choice in product(*streams):
        yield from _grown(root, choice, below, correlated)


def _grown(
    tree: frozenset[int], roots: tuple[int, ...], below: Choices, correlated: list[bool]
) -> Iterator[frozenset[int]]:
    if not roots:
        yield tree
        return
    for branch in trees_of(roots[0], below, correlated):
        yield from _grown(tree | branch, roots[1:], below, correlated)
