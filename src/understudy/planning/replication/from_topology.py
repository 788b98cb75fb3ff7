"""A topology of the project as a planning problem: its slices are the tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from understudy.errors import InvalidInput
from understudy.planning.replication.problem import Operator, Partitioning, ReplicationProblem, Stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class SourceLike(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def slices(self) -> int: ...


class OperatorLike(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> Sequence[str]: ...
    @property
    def slices(self) -> int: ...
    @property
    def key(self) -> object: ...
    @property
    def input(self) -> str: ...


class TopologyLike(Protocol):
    @property
    def sources(self) -> Sequence[SourceLike]: ...
    @property
    def operators(self) -> Sequence[OperatorLike]: ...


def problem_from(topology: TopologyLike, rates: Mapping[str, float] | None = None) -> ReplicationProblem:
    """`rates` maps a slice such as `counts[1]` to its output rate; a slice without one counts 1.0."""
    given = dict(rates or {})

    def tasks(name: str, slices: int) -> tuple[float, ...]:
        return tuple(given.pop(f"{name}[{i}]", 1.0) for i in range(slices))

    operators = [Operator(source.name, tasks(source.name, source.slices)) for source in topology.sources]
    operators += [Operator(op.name, tasks(op.name, op.slices), op.input == "correlated") for op in topology.operators]
    if given:
        raise InvalidInput(
            f"rates are given for unknown slices: {', '.join(sorted(given))}",
            why="a rate belongs to one slice of the topology",
            fix=f"use names such as {operators[0].task(0)}",
        )
    slices = {op.name: len(op.rates) for op in operators}
    keys = {op.name: op.key for op in topology.operators}
    streams = tuple(
        Stream(name, op.name, _partitioning(slices.get(name, 0), keys.get(name), op))
        for op in topology.operators
        for name in op.inputs
    )
    return ReplicationProblem(tuple(operators), streams)


def _partitioning(upstream: int, key: object, reader: OperatorLike) -> Partitioning:
    """Rows follow their slice unless a key moves them; the key by which they were divided before does not."""
    if reader.slices == upstream and (not reader.key or reader.key == key):
        return Partitioning.ONE_TO_ONE
    if reader.slices == 1:
        return Partitioning.MERGE
    return Partitioning.FULL
