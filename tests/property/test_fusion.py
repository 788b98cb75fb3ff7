"""What is fused, and who reads whom: for random topologies, checked against the rules in plain words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import Input, Output, one, stateful, two, word_count_layout
from understudy.control.application.fusion import chains, lay_out
from understudy.control.cluster.placement import place
from understudy.model.layout import Kind, Layout
from understudy.model.names import SliceId
from understudy.model.recovery import Recovery
from understudy.model.topology import Topology


def pair(upstream: dict[str, Any], reader: dict[str, Any]) -> Topology:
    app = Topology("app")
    app.source("in", Input(), slices=2)
    app.operator("in", name="a", **upstream)(one)
    app.operator("a", name="b", **reader)(one)
    app.sink("out", "b", Output())
    return app


def fused(app: Topology, *with_state: str) -> list[list[str]]:
    app.validate()
    return [[operator.name for operator in chain] for chain in chains(app, stateful(*with_state, of=app))]


@pytest.mark.parametrize(
    ("upstream", "reader", "together"),
    [
        ({}, {}, True),
        ({"slices": 2}, {"slices": 2}, True),
        ({"order": "strict", "time": "at"}, {}, True),
        ({}, {"key": "word"}, True),
        ({"key": "word", "slices": 2}, {"slices": 2}, True),
        ({"slices": 2}, {"slices": 2, "key": "word"}, False),
        ({"slices": 2}, {"slices": 1}, False),
        ({}, {"order": "strict", "time": "at"}, False),
        ({"fuse": False}, {}, False),
        ({}, {"fuse": False}, False),
        ({"deterministic": False}, {}, False),
        ({"recovery": Recovery(ship_every=1)}, {}, False),
        ({"output_mode": "update"}, {}, False),
    ],
)
def test_what_can_share_a_query_does(upstream: dict[str, Any], reader: dict[str, Any], together: bool) -> None:
    app = pair(upstream, reader)
    assert fused(app) == ([["a", "b"]] if together else [["a"], ["b"]])
    assert fused(app, "a") == fused(app, "b") == [["a"], ["b"]], "state keeps to itself"


def test_a_stream_with_two_readers_is_published() -> None:
    read_by_a_sink, read_by_another = pair({}, {}), pair({}, {})
    read_by_a_sink.sink("more", "a", Output())
    read_by_another.operator("a", name="c")(one)
    read_by_another.sink("more", "c", Output())
    assert fused(read_by_a_sink) == [["a"], ["b"]]
    assert fused(read_by_another) == [["a"], ["b"], ["c"]]


def test_a_join_starts_a_query_and_may_have_a_tail() -> None:
    app = Topology("app")
    app.source("in", Input())
    app.operator("in", name="a")(one)
    app.operator("in", name="b")(one)
    app.operator("a", "b", name="join")(two)
    app.operator("join", name="tail")(one)
    app.sink("out", "tail", Output())
    assert sorted(fused(app)) == [["a"], ["b"], ["join", "tail"]]
    layout = lay_out(app, stateful(of=app))
    assert layout["tail"].parts == ("join", "tail")
    assert [edge.upstream for edge in layout["tail"].edges] == ["a", "b"]
    assert [edge.upstream for edge in layout["out"].edges] == ["tail"]


def test_both_sides_of_a_self_join_are_told_apart() -> None:
    app = Topology("app")
    app.source("in", Input())
    app.operator("in", name="a")(one)
    app.operator("a", "a", name="self")(two)
    app.sink("out", "self", Output())
    assert fused(app) == [["a"], ["self"]]
    channels = lay_out(app, stateful(of=app)).channels(SliceId("self", 0))
    assert [(channel.input, str(channel.upstream)) for channel in channels] == [(0, "a[0]"), (1, "a[0]")]


@st.composite
def topologies(draw: st.DrawFn) -> tuple[Topology, dict[str, bool]]:
    app = Topology("app")
    for number in range(draw(st.integers(1, 2))):
        app.source(f"s{number}", Input(), slices=draw(st.integers(1, 3)))
    state: dict[str, bool] = {}
    for number in range(draw(st.integers(1, 6))):
        streams = st.sampled_from(sorted(app.streams))
        inputs = draw(st.lists(streams, min_size=1, max_size=2))
        slices, keyed = draw(st.integers(1, 3)), draw(st.booleans())
        name = f"o{number}"
        state[name] = draw(st.booleans()) and (keyed or slices == 1)
        options: dict[str, Any] = {"key": "word" if keyed else None, "slices": slices, "fuse": draw(st.booleans())}
        app.operator(*inputs, name=name, **options)(one if len(inputs) == 1 else two)
    for number in range(draw(st.integers(1, 2))):
        app.sink(f"out{number}", draw(st.sampled_from(sorted(app.streams))), Output())
    read = {name for op in app.operators for name in op.inputs} | {sink.stream for sink in app.sinks}
    for name in app.streams.keys() - read:
        app.sink(f"{name}-out", name, Output())
    app.validate()
    return app, state


@settings(max_examples=100, deadline=None)
@given(topologies())
def test_every_operator_runs_once_and_every_stream_that_is_read_is_published(
    drawn: tuple[Topology, dict[str, bool]],
) -> None:
    app, state = drawn
    layout = lay_out(app, state)
    parts = [part for vertex in layout.vertices for part in vertex.parts]
    assert sorted(parts) == sorted(operator.name for operator in app.operators)
    names = {vertex.name for vertex in layout.vertices}
    assert all(edge.upstream in names for vertex in layout.vertices for edge in vertex.edges)
    by_name = {operator.name: operator for operator in app.operators}
    for vertex in layout.vertices:
        assert len(vertex.parts) < 2 or not any(state[part] for part in vertex.parts)
        assert all(by_name[part].slices == vertex.slices for part in vertex.parts)
        if vertex.kind is Kind.OPERATOR:
            assert vertex.name == vertex.parts[-1]
            assert tuple(edge.upstream for edge in vertex.edges) == by_name[vertex.parts[0]].inputs


@settings(max_examples=100, deadline=None)
@given(topologies())
def test_channels_and_readers_are_inverse_and_cover_every_row_once(drawn: tuple[Topology, dict[str, bool]]) -> None:
    layout = lay_out(*drawn)
    pairs = {(channel.upstream, reader) for reader in layout.slices for channel in layout.channels(reader)}
    assert pairs == {(upstream, reader) for upstream in layout.slices for reader in layout.readers(upstream)}
    for vertex in layout.vertices:
        for number, edge in enumerate(vertex.edges):
            read = [
                (channel.upstream.index, channel.part)
                for index in range(vertex.slices)
                for channel in layout.channels(SliceId(vertex.name, index))
                if channel.input == number
            ]
            parts = range(1 if edge.split.whole else edge.split.slices)
            expected = [(i, part) for i in range(layout[edge.upstream].slices) for part in parts]
            assert sorted(read) == expected, "every part of every bag has one reader"
            assert edge.split.whole or edge.split in layout.splits(edge.upstream)
    for reader in layout.slices:
        order = [(channel.upstream, channel.input) for channel in layout.channels(reader)]
        assert order == sorted(order), "the merge has a fixed order"


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5), st.integers(1, 6), st.data())
def test_placement_is_balanced_and_repeatable(nodes: int, counts: int, data: st.DataObject) -> None:
    layout: Layout = word_count_layout(counts)
    names = [f"node-{number}" for number in range(nodes)]
    moved = data.draw(st.lists(st.sampled_from(layout.slices), unique=True))
    hosts = {s: data.draw(st.sampled_from([*names, "gone"])) for s in layout.slices if s not in moved}
    placed = place(moved, names, hosts, layout)
    assert set(placed) == set(moved)
    assert set(placed.values()) <= set(names)
    assert place(list(reversed(moved)), list(reversed(names)), hosts, layout) == placed
    whole = place(layout.slices, names, {}, layout)
    spread = [sum(s.operator == "counts" and host == name for s, host in whole.items()) for name in names]
    assert max(spread) - min(spread) <= 1 or counts < nodes
