"""Rates, loads and traffic of all running operators, as arrays (Grüneberger et al. 2013, §2.4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.availability.query import OperatorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from understudy.planning.availability.sharing import SharedGraph

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Workload:
    """Operators 0…m-1 and queries 0…l-1; every planner works on this and nothing else.

    `load` is the share of one CPU an operator keeps busy. `members[offsets[q]:offsets[q + 1]]` are the
    operators of query q. `edges` are (producer, reader) pairs.
    """

    operators: tuple[str, ...]
    load: Floats
    net_in: Floats
    net_out: Floats
    queries: tuple[str, ...]
    offsets: Ints
    members: Ints
    edges: Ints

    @cached_property
    def network(self) -> Floats:
        """What a copy needs of a host's network, neighbours on the same host included: after a failure the
        neighbour's other copy is elsewhere, and the traffic has to pass then."""
        return self.net_in + self.net_out

    @cached_property
    def degree(self) -> Ints:
        """How many queries use each operator."""
        return np.bincount(self.members, minlength=len(self.operators))

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        beside: list[list[int]] = [[] for _ in self.operators]
        for producer, reader in self.edges.tolist():
            beside[producer].append(reader)
            beside[reader].append(producer)
        return tuple(tuple(dict.fromkeys(others)) for others in beside)

    @cached_property
    def by_query(self) -> tuple[tuple[int, ...], ...]:
        flat, ends = self.members.tolist(), self.offsets.tolist()
        return tuple(tuple(flat[a:b]) for a, b in pairwise(ends))

    @cached_property
    def by_operator(self) -> tuple[tuple[int, ...], ...]:
        """Queries that use each operator."""
        users: list[list[int]] = [[] for _ in self.operators]
        for query, operators in enumerate(self.by_query):
            for operator in operators:
                users[operator].append(query)
        return tuple(map(tuple, users))

    @property
    def total_load(self) -> float:
        return float(self.load.sum())


def workload_of(graph: SharedGraph) -> Workload:
    """Follow the source rates through the graph.

    An operator sees the sum of its inputs' output rates and emits that times its selectivity, so every rate
    is a linear combination of source rates. Load is input rate times cost per tuple; traffic is rate times
    tuple size. A source is fed from outside: what it takes in is what it sends out.
    """
    nodes = graph.nodes
    index = {node.id: position for position, node in enumerate(nodes)}
    load = np.zeros(len(nodes))
    net_in = np.zeros(len(nodes))
    net_out = np.zeros(len(nodes))
    sent: list[float] = []
    edges: list[tuple[int, int]] = []
    for position, node in enumerate(nodes):
        operator = node.operator
        inputs = [index[id_] for id_ in node.inputs]
        edges += [(producer, position) for producer in inputs]
        if operator.type is OperatorType.SOURCE:
            received = out = operator.rate
            net_in[position] = received * operator.size
        else:
            received = sum(sent[producer] for producer in inputs)
            out = received * operator.selectivity
            net_in[position] = sum(net_out[producer] for producer in inputs)
        sent.append(out)
        load[position] = received * operator.cost
        net_out[position] = out * operator.size
    queries = graph.queries
    members = [index[id_] for ids in queries.values() for id_ in ids]
    return Workload(
        operators=tuple(node.name for node in nodes),
        load=load,
        net_in=net_in,
        net_out=net_out,
        queries=tuple(queries),
        offsets=np.cumsum([0, *(len(ids) for ids in queries.values())], dtype=np.int64),
        members=np.array(members, dtype=np.int64),
        edges=np.array(edges, dtype=np.int64).reshape(-1, 2),
    )
