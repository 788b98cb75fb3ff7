"""A topology as it runs, as a planning problem: slices of sources and of fused operators are the tasks.

A sink of the application is no task: it writes what the last operators emit, and these are the sinks of the problem, as
in Su and Zhou 2016.

An operator that is keyed as its upstream operator is, in as many slices, reads one slice of it: a key keeps its slice,
unless the upstream operator overwrites the column of that name. Only the prediction rests on this, not the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.model.layout import Edge, Kind, Layout, Vertex
from understudy.planning.replication.problem import Operator, Partitioning, ReplicationProblem, Stream

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from understudy.model.names import SliceId


def problem_of(
    layout: Layout, joins: Collection[str] = (), rates: Mapping[SliceId, float] | None = None
) -> ReplicationProblem:
    """`joins` names operators whose inputs are correlated. `rates` are rows a second; an unknown one counts 1.0."""
    known = {str(slice_id): rate for slice_id, rate in (rates or {}).items()}
    tasks = [vertex for vertex in layout.vertices if vertex.kind is not Kind.SINK]
    operators = tuple(
        Operator(
            vertex.name,
            tuple(known.get(f"{vertex.name}[{index}]", 1.0) for index in range(vertex.slices)),
            any(part in joins for part in vertex.parts),
        )
        for vertex in tasks
    )
    streams = tuple(
        Stream(upstream, vertex.name, _partitioning(edge, layout[upstream], vertex))
        for vertex in tasks
        # An operator may read one stream twice.
        for upstream, edge in {edge.upstream: edge for edge in vertex.edges}.items()
    )
    sinks = {edge.upstream: None for vertex in layout.vertices if vertex.kind is Kind.SINK for edge in vertex.edges}
    return ReplicationProblem(operators, streams, tuple(sinks))


def _partitioning(edge: Edge, upstream: Vertex, reader: Vertex) -> Partitioning:
    if edge.one_to_one or _keeps(upstream, edge):
        return Partitioning.ONE_TO_ONE
    return Partitioning.MERGE if reader.slices == 1 else Partitioning.FULL


def _keeps(upstream: Vertex, edge: Edge) -> bool:
    """Whether the rows of a slice stay together: they were divided in the same way before."""
    return bool(edge.split.key) and bool(upstream.edges) and all(one.split == edge.split for one in upstream.edges)
