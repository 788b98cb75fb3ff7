"""A topology on paper: text, a Mermaid graph, JSON. With a layout it shows what was fused and what keeps state."""

from __future__ import annotations

from typing import Any

from understudy.control.application.fusion import edge
from understudy.model.layout import Edge, Layout
from understudy.model.topology import Operator, Topology


def as_text(topology: Topology, layout: Layout | None = None) -> str:
    """One line per source, operator and sink, readers below what they read."""
    lines = [f"{topology.name}: epochs of {topology.epoch_s:g} s"]
    lines += [f"  source    {_many(s.name, s.slices)}  {type(s.source).__name__}" for s in topology.sources]
    for operator in topology.in_order():
        inputs = ", ".join(f"{name} ({_how(_edge(topology, name, operator))})" for name in operator.inputs)
        notes = "; ".join([operator.output_mode, *_notes(operator, layout)])
        lines.append(f"  operator  {_many(operator.name, operator.slices)}  <- {inputs}  [{notes}]")
    lines += [f"  sink      {sink.name}  <- {sink.stream}  {type(sink.sink).__name__}" for sink in topology.sinks]
    if layout is not None:
        lines += [f"  one query: {' + '.join(vertex.parts)}" for vertex in layout.vertices if len(vertex.parts) > 1]
    return "\n".join(lines)


def as_mermaid(topology: Topology, layout: Layout | None = None) -> str:
    """For https://mermaid.js.org, which GitHub and many editors draw."""
    lines = ["graph LR"]
    lines += [f"  {source.name}[/{_many(source.name, source.slices)}/]" for source in topology.sources]
    fused = {name: vertex.name for vertex in layout.vertices for name in vertex.parts} if layout else {}
    groups = [v for v in layout.vertices if len(v.parts) > 1] if layout else []
    lines += [f"  {op.name}[{_many(op.name, op.slices)}]" for op in topology.in_order() if not _in(op.name, groups)]
    for group in groups:
        names = " & ".join(f"{name}[{_many(name, group.slices)}]" for name in group.parts)
        lines += [f"  subgraph {fused[group.name]}-query [one query]", f"    {names}", "  end"]
    lines += [f"  {sink.name}[({sink.name})]" for sink in topology.sinks]
    for operator in topology.in_order():
        for name in operator.inputs:
            lines.append(f"  {name} -->|{_how(_edge(topology, name, operator))}| {operator.name}")
    lines += [f"  {sink.stream} --> {sink.name}" for sink in topology.sinks]
    return "\n".join(lines)


def as_json(topology: Topology, layout: Layout | None = None) -> dict[str, Any]:
    stateful = _stateful(layout)
    return {
        "name": topology.name,
        "epoch_s": topology.epoch_s,
        "sources": [{"name": s.name, "slices": s.slices, "kind": type(s.source).__name__} for s in topology.sources],
        "operators": [
            {
                "name": op.name,
                "inputs": list(op.inputs),
                "partitioning": [_how(_edge(topology, name, op)) for name in op.inputs],
                "key": list(op.key),
                "slices": op.slices,
                "output_mode": op.output_mode,
                "input": op.input,
                "order": op.order,
                "deterministic": op.deterministic,
                "scheme": op.recovery.scheme,
                "stateful": stateful.get(op.name),
            }
            for op in topology.in_order()
        ],
        "sinks": [{"name": s.name, "stream": s.stream, "kind": type(s.sink).__name__} for s in topology.sinks],
        "queries": [list(v.parts) for v in layout.vertices if v.parts] if layout else None,
    }


def _many(name: str, slices: int) -> str:
    return name if slices == 1 else f"{name} ×{slices}"


def _edge(topology: Topology, stream: str, reader: Operator) -> Edge:
    return edge(topology.streams[stream].slices, stream, reader)


def _how(found: Edge) -> str:
    if found.one_to_one:
        return "one to one"
    if found.split.whole:
        return "all"
    return f"by {', '.join(found.split.key)}" if found.split.key else "spread"


def _notes(operator: Operator, layout: Layout | None) -> list[str]:
    stateful = _stateful(layout).get(operator.name)
    notes = [] if stateful is None else ["keeps state" if stateful else "no state"]
    notes += [] if operator.deterministic else ["not deterministic"]
    return [*notes, operator.recovery.scheme]


def _stateful(layout: Layout | None) -> dict[str, bool]:
    return {name: vertex.stateful for vertex in layout.vertices for name in vertex.parts} if layout else {}


def _in(name: str, groups: list[Any]) -> bool:
    return any(name in group.parts for group in groups)
