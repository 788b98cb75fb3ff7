"""From the topology as written to the layout that runs: fuse what can share a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from understudy.errors import InvalidInput
from understudy.model.entry_checks import at
from understudy.model.layout import Edge, Kind, Layout, Split, Vertex
from understudy.model.recovery import Scheme
from understudy.model.topology import Operator, Topology


def lay_out(topology: Topology, stateful: Mapping[str, bool]) -> Layout:
    """Neighbouring stateless one-to-one operators become one vertex; every hop saved is an epoch of latency saved."""
    for operator in topology.operators:
        _check_key(operator, stateful[operator.name])
        _check_scheme(operator, stateful[operator.name])
    slices = {name: entry.slices for name, entry in topology.streams.items()}
    vertices = [Vertex(source.name, Kind.SOURCE, source.slices) for source in topology.sources]
    for chain in chains(topology, stateful):
        first, last = chain[0], chain[-1]
        vertices.append(
            Vertex(
                name=last.name,
                kind=Kind.OPERATOR,
                slices=last.slices,
                edges=tuple(edge(slices[stream], stream, first) for stream in first.inputs),
                parts=tuple(operator.name for operator in chain),
                stateful=stateful[last.name],
                deterministic=last.deterministic,
                recovery=last.recovery,
            )
        )
    vertices += [Vertex(sink.name, Kind.SINK, 1, (Edge(sink.stream, Split()),)) for sink in topology.sinks]
    return Layout(tuple(vertices))


def chains(topology: Topology, stateful: Mapping[str, bool]) -> list[list[Operator]]:
    """The operators in order, each fused to the one before it where that is possible."""
    tails: dict[str, list[Operator]] = {}
    for operator in topology.in_order():
        before = tails.get(operator.inputs[0])
        if before is not None and _fusible(before[-1], operator, topology, stateful):
            del tails[before[-1].name]
            tails[operator.name] = [*before, operator]
        else:
            tails[operator.name] = [operator]
    return list(tails.values())


def _fusible(upstream: Operator, reader: Operator, topology: Topology, stateful: Mapping[str, bool]) -> bool:
    sole_reader = _count_readers(upstream.name, topology) == 1
    return (
        len(reader.inputs) == 1
        and sole_reader
        and not stateful[upstream.name]
        and not stateful[reader.name]
        and upstream.fuse
        and reader.fuse
        and upstream.slices == reader.slices
        and (reader.slices == 1 or not reader.key)
        and reader.order == "epoch"
        and upstream.deterministic == reader.deterministic
        and upstream.recovery == reader.recovery
        and upstream.output_mode == reader.output_mode
    )


def _count_readers(stream: str, topology: Topology) -> int:
    inputs: Sequence[str] = [name for operator in topology.operators for name in operator.inputs]
    return inputs.count(stream) + sum(sink.stream == stream for sink in topology.sinks)


def edge(upstream_slices: int, stream: str, reader: Operator) -> Edge:
    """How the slices of a stream reach the slices of its reader."""
    if not reader.key and upstream_slices == reader.slices:
        return Edge(stream, Split(), one_to_one=True)
    return Edge(stream, Split(reader.key if reader.slices > 1 else (), reader.slices))


def _check_key(operator: Operator, stateful: bool) -> None:
    if stateful and operator.slices > 1 and not operator.key:
        raise InvalidInput(
            f"{at(operator)}operator '{operator.name}' keeps state in {operator.slices} slices and has no key",
            why="without a key, rows that belong together would meet different slices",
            fix="name the columns it groups or joins by, like key='word', or give it slices=1",
        )


def _check_scheme(operator: Operator, stateful: bool) -> None:
    if stateful and not operator.deterministic and operator.recovery.scheme == Scheme.PASSIVE_STANDBY_HOT:
        raise InvalidInput(
            f"operator '{operator.name}' keeps state, is not deterministic and asks for passive_standby_hot",
            why="a hot standby loads its state by running the last batch again, which would come to another state",
            fix="use passive_standby_cold or a scheme below it, or make the operator deterministic",
        )
