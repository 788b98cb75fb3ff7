"""The global query graph: operators shared between queries, incrementally (Grüneberger et al. 2013, §2.1, Fig. 1).

Two operators are the same when type, predicate and inputs are. Because inputs are compared by identity in
the graph, not by name, one pass over a query in topological order finds the whole reusable part; no search
over the running graph is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from understudy.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.planning.availability.query import Operator, OperatorType, Query

Key = tuple["OperatorType", str, tuple[int, ...]]


@dataclass(slots=True)
class Node:
    """A running operator; `id` grows, and inputs are always older than their readers."""

    id: int
    name: str
    operator: Operator
    inputs: tuple[int, ...]
    users: set[str] = field(default_factory=set)

    @property
    def key(self) -> Key:
        return (self.operator.type, self.operator.predicate, self.inputs)


@dataclass(frozen=True, slots=True)
class Added:
    """Names of the operators that a query had to start, and of those it found running."""

    started: tuple[str, ...]
    reused: tuple[str, ...]


class SharedGraph:
    def __init__(self, queries: Iterable[Query] = ()) -> None:
        self._nodes: dict[int, Node] = {}
        self._by_key: dict[Key, Node] = {}
        self._names: set[str] = set()
        self._queries: dict[str, tuple[int, ...]] = {}
        self._next = 0
        for query in queries:
            self.add(query)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All running operators, inputs before readers."""
        return tuple(self._nodes.values())

    @property
    def queries(self) -> dict[str, tuple[int, ...]]:
        """Node ids of every query, in the order the queries came."""
        return dict(self._queries)

    def add(self, query: Query) -> Added:
        if query.name in self._queries:
            raise InvalidInput(
                f"query {query.name!r} is running already",
                why="a query is known by its name",
                fix="remove the running one first, or choose another name",
            )
        ordered = query.ordered()
        running = self._running(query.name, ordered)
        ids: dict[str, int] = {}
        started: list[str] = []
        for operator in ordered:
            node = running.get(operator.name)
            if node is None:
                inputs = tuple(ids[name] for name in operator.inputs)
                node = self._by_key.get((operator.type, operator.predicate, inputs))
            if node is None:
                node = self._start(f"{query.name}.{operator.name}", operator, inputs)
                started.append(node.name)
            node.users.add(query.name)
            ids[operator.name] = node.id
        self._queries[query.name] = tuple(dict.fromkeys(ids.values()))
        return Added(tuple(started), tuple(dict.fromkeys(node.name for node in running.values())))

    def remove(self, name: str) -> tuple[str, ...]:
        """Removes a query; returns the operators that no other query uses, which are removed too."""
        if name not in self._queries:
            raise InvalidInput(
                f"query {name!r} is not running",
                why="it was never added, or removed before",
                fix=f"running are: {', '.join(self._queries) or 'none'}",
            )
        released: list[str] = []
        for id_ in self._queries.pop(name):
            node = self._nodes[id_]
            node.users.discard(name)
            if not node.users:
                del self._nodes[id_], self._by_key[node.key]
                self._names.discard(node.name)
                released.append(node.name)
        return tuple(released)

    def _start(self, name: str, operator: Operator, inputs: tuple[int, ...]) -> Node:
        # Others may keep an operator of a removed query whose name is used again: operator names must stay unique.
        unique, count = name, 1
        while unique in self._names:
            count += 1
            unique = f"{name}#{count}"
        node = Node(self._next, unique, operator, inputs)
        self._next += 1
        self._nodes[node.id] = node
        self._by_key[node.key] = node
        self._names.add(unique)
        return node

    def _running(self, query: str, ordered: tuple[Operator, ...]) -> dict[str, Node]:
        """Operators of the query that run already; refuses contradictions before anything is changed, because
        a half-added query would leave operators without an owner."""
        found: dict[str, Node] = {}
        for operator in ordered:
            inputs = [found[name].id for name in operator.inputs if name in found]
            if len(inputs) < len(operator.inputs):
                continue
            node = self._by_key.get((operator.type, operator.predicate, tuple(inputs)))
            if node is None:
                continue
            found[operator.name] = node
            if operator is not node.operator and _measures(operator) != _measures(node.operator):
                raise InvalidInput(
                    f"operator {operator.name!r} of query {query!r} contradicts the running {node.name!r}",
                    why="type, predicate and inputs are the same, but selectivity, cost, size or rate differ",
                    fix="state the same numbers, or another predicate if they are different operators",
                )
        return found


def _measures(operator: Operator) -> tuple[float, ...]:
    return (operator.selectivity, operator.cost, operator.size, operator.rate)
