"""The operator graph as boxes in columns: every box right of all it reads."""

from __future__ import annotations

from understudy.control.application.fusion import edge
from understudy.model.layout import Edge, Kind, Layout, Split, Vertex
from understudy.model.page import EdgeLook, Plan, VertexLook
from understudy.model.topology import Topology


def plan_of(topology: Topology, layout: Layout | None) -> Plan:
    """As it runs; before Spark was asked what can be fused, as it was written."""
    vertices = (layout or _unfused(topology)).vertices
    columns = _columns(vertices)
    return Plan(
        app=topology.name,
        epoch_s=topology.epoch_s,
        vertices=tuple(_vertex(vertex, columns[vertex.name]) for vertex in vertices),
        edges=tuple(
            EdgeLook(upstream=found.upstream, reader=vertex.name, how=describe(found))
            for vertex in vertices
            for found in vertex.edges
        ),
    )


def describe(found: Edge) -> str:
    if found.one_to_one:
        return "one to one"
    if found.split.whole:
        return "all"
    return f"by {', '.join(found.split.key)}" if found.split.key else "spread"


def _vertex(vertex: Vertex, column: int) -> VertexLook:
    return VertexLook(
        name=vertex.name,
        kind=vertex.kind,
        parts=vertex.parts,
        slices=vertex.slices,
        stateful=vertex.stateful,
        scheme=vertex.recovery.scheme if vertex.kind is Kind.OPERATOR else "",
        column=column,
    )


def _columns(vertices: tuple[Vertex, ...]) -> dict[str, int]:
    """The longest way from a source. Vertices come in an order in which readers follow what they read."""
    columns: dict[str, int] = {}
    for vertex in vertices:
        columns[vertex.name] = 1 + max((columns.get(found.upstream, -1) for found in vertex.edges), default=-1)
    return columns


def _unfused(topology: Topology) -> Layout:
    slices = {name: entry.slices for name, entry in topology.streams.items()}
    vertices = [Vertex(source.name, Kind.SOURCE, source.slices) for source in topology.sources]
    for operator in topology.in_order():
        edges = tuple(edge(slices[stream], stream, operator) for stream in operator.inputs)
        vertices.append(
            Vertex(operator.name, Kind.OPERATOR, operator.slices, edges, (operator.name,), recovery=operator.recovery)
        )
    vertices += [Vertex(sink.name, Kind.SINK, 1, (Edge(sink.stream, Split()),)) for sink in topology.sinks]
    return Layout(tuple(vertices))
