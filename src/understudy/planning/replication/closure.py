"""What a set of tasks still misses to be part of complete trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.sensitivity import sensitivity
from understudy.planning.replication.structure import connections

if TYPE_CHECKING:
    from understudy.planning.replication.metrics import Metrics


class Closure:
    """Inside some operators; streams from and to other operators are taken to be alive."""

    def __init__(self, metrics: Metrics, operators: frozenset[int]) -> None:
        network = metrics.network
        self._correlated = network.correlated
        self._owner = [k for k, (first, end) in enumerate(network.bounds) for _ in range(first, end)]
        self._weight = sensitivity(metrics, np.ones(metrics.problem.task_count))
        self._feeders: dict[int, list[frozenset[int]]] = {}
        self._readers: dict[int, set[int]] = {}
        self._fed_from_outside: set[int] = set()
        for flow in (f for position in operators for f in network.inputs[position]):
            if flow.source not in operators:
                self._fed_from_outside.add(flow.target)
                continue
            for task, feeders in connections(network, flow).items():
                self._feeders.setdefault(task, []).append(frozenset(feeders))
                for feeder in feeders:
                    self._readers.setdefault(feeder, set()).add(task)
        read_outside = {f.source for fs in network.inputs for f in fs if f.target not in operators}
        sinks = {metrics.problem.positions[name] for name in metrics.problem.sinks}
        self._ends = read_outside | sinks

    def of(self, tasks: set[int], held: set[int]) -> set[int]:
        """The tasks, with feeders and readers added until each of them contributes to something."""
        result, queue = set(tasks), sorted(tasks)
        while queue:
            task = queue.pop()
            for choices in self._missing(task, held | result):
                best = max(choices, key=lambda t: (self._weight[t], -t))
                result.add(best)
                queue.append(best)
        return result

    def _missing(self, task: int, alive: set[int]) -> list[frozenset[int]]:
        """Sets of which one task each is needed."""
        owner = self._owner[task]
        streams = self._feeders.get(task, [])
        silent = [stream for stream in streams if not stream & alive]
        needed: list[frozenset[int]] = []
        if self._correlated[owner]:
            needed += silent
        elif streams and len(silent) == len(streams) and owner not in self._fed_from_outside:
            needed.append(frozenset().union(*streams))
        readers = frozenset(self._readers.get(task, ()))
        if readers and owner not in self._ends and not readers & alive:
            needed.append(readers)
        return needed
