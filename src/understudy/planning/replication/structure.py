"""Sub-topologies and units: how a topology is cut before it is planned (Su and Zhou 2016, §IV-C).

The paper grows sub-topologies by depth-first searches from the sinks and requires that a `full` stream lies
between any two. We reach the same with components: operators joined by streams that are not full form a
structured sub-topology; operators with only full streams around them form full ones with their neighbours
of that kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.mc_trees import trees_of
from understudy.planning.replication.problem import Partitioning

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.planning.replication.flows import Flow, Network

_MOST_SEGMENTS = 4000  # per unit; the paper's units have no more than their widest operator has inputs


@dataclass(frozen=True)
class Unit:
    operators: frozenset[int]
    segments: tuple[frozenset[int], ...]


@dataclass(frozen=True)
class SubTopology:
    operators: frozenset[int]
    full: bool


def sub_topologies(network: Network) -> list[SubTopology]:
    count = len(network.bounds)
    structured = [(f.source, f.target) for f in _flows(network) if not is_full(network, f)]
    parts = components(range(count), structured)
    alone = {next(iter(part)) for part in parts if len(part) == 1}
    between = [(f.source, f.target) for f in _flows(network) if {f.source, f.target} <= alone]
    result = [SubTopology(part, full=False) for part in parts if len(part) > 1]
    return result + [SubTopology(part, full=True) for part in components(alone, between)]


def is_full(network: Network, flow: Flow) -> bool:
    """Into or out of a single task, `full` is nothing but a merge or a split."""
    problem = network.problem
    sender, reader = problem.operators[flow.source], problem.operators[flow.target]
    if len(sender.rates) == 1 or len(reader.rates) == 1:
        return False
    stream = next(s for s in problem.streams if (s.source, s.target) == (sender.name, reader.name))
    if stream.shares is None:
        return stream.partitioning is Partitioning.FULL
    return all(share > 0 for row in stream.shares for share in row)


def units(network: Network, operators: frozenset[int]) -> list[Unit]:
    """Cut before a task that merges and then splits, and before a join that merges: trees multiply there."""
    inner = [f for f in _flows(network) if f.source in operators and f.target in operators]
    splitting = {f.source for f in inner if _splits(f)}
    joining = {f.target for f in inner if network.correlated[f.target] and len(network.inputs[f.target]) > 1}
    kept = [f for f in inner if not (_merges(f) and f.target in splitting | joining)]
    parts = components(operators, [(f.source, f.target) for f in kept])
    return [Unit(part, _segments(network, part, kept)) for part in parts]


def _segments(network: Network, operators: frozenset[int], flows: list[Flow]) -> tuple[frozenset[int], ...]:
    inside = [f for f in flows if f.source in operators and f.target in operators]
    below: dict[int, list[tuple[int, ...]]] = {}
    for flow in inside:
        for task, feeders in connections(network, flow).items():
            below.setdefault(task, []).append(tuple(feeders))
    read = {f.source for f in inside}
    correlated = [op.correlated for op in network.problem.operators for _ in op.rates]
    choices = tuple(tuple(below.get(task, ())) for task in range(network.problem.task_count))
    ends = [t for position in sorted(operators - read) for t in range(*network.bounds[position])]
    trees = (tree for task in ends for tree in trees_of(task, choices, correlated))
    return tuple(dict.fromkeys(islice(trees, _MOST_SEGMENTS)))


def connections(network: Network, flow: Flow) -> dict[int, list[int]]:
    """Upstream tasks of each downstream task, by global number."""
    up, down = network.bounds[flow.source][0], network.bounds[flow.target][0]
    if flow.uniform:
        feeders = [up + int(i) for i in flow.up]
        return {down + i: feeders for i in range(len(flow.total))}
    result: dict[int, list[int]] = {}
    for i, j in zip(flow.up, flow.down, strict=True):
        result.setdefault(down + int(j), []).append(up + int(i))
    return result


def neighbours(network: Network, parts: list[Unit]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """For (unit, segment): the segments of other units that exchange data with it."""
    home = {operator: k for k, unit in enumerate(parts) for operator in unit.operators}
    holders: dict[int, list[tuple[int, int]]] = {}
    for k, unit in enumerate(parts):
        for i, segment in enumerate(unit.segments):
            for task in segment:
                holders.setdefault(task, []).append((k, i))
    result: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for flow in _flows(network):
        if home.get(flow.source, -1) == home.get(flow.target, -1) or not {flow.source, flow.target} <= set(home):
            continue
        for task, feeders in connections(network, flow).items():
            for feeder in feeders:
                for a in holders.get(task, ()):
                    for b in holders.get(feeder, ()):
                        result.setdefault(a, set()).add(b)
                        result.setdefault(b, set()).add(a)
    return {key: sorted(values) for key, values in result.items()}


def components(nodes: Iterable[int], edges: Iterable[tuple[int, int]]) -> list[frozenset[int]]:
    home = {node: {node} for node in sorted(nodes)}
    for a, b in edges:
        if home[a] is not home[b]:
            home[a] |= home[b]
            for node in home[b]:
                home[node] = home[a]
    return list(dict.fromkeys(frozenset(part) for part in home.values()))


def _flows(network: Network) -> list[Flow]:
    return [flow for flows in network.inputs for flow in flows]


def _merges(flow: Flow) -> bool:
    if flow.uniform:
        return len(flow.up) > 1
    return bool(np.bincount(flow.down).max() > 1)


def _splits(flow: Flow) -> bool:
    if flow.uniform:
        return len(flow.total) > 1
    return bool(np.bincount(flow.up).max() > 1)
