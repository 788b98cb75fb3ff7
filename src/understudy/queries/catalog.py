"""What is known about the streams of a topology without Spark: columns, event times, slices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from understudy.model.entries import Operator, Source
from understudy.model.topology import Topology
from understudy.queries.compiled import Compiled
from understudy.queries.plans import Known
from understudy.queries.syntax import Node, Query, Step, Stream, walk


def known_streams(app: Topology) -> dict[str, Known]:
    """Every stream of the topology, by name."""
    return {
        name: _source(entry) if isinstance(entry, Source) else _operator(entry) for name, entry in app.streams.items()
    }


def _source(entry: Source) -> Known:
    schema: pa.Schema = entry.source.schema
    time, why = _event_time(entry.name, entry.source, schema)
    return Known(entry.name, tuple(schema.names), time, slices=entry.slices, why_time=why)


def _event_time(name: str, source: Any, schema: pa.Schema) -> tuple[str | None, str]:
    """The column the source itself goes by, or the only one that can be meant."""
    named = getattr(source, "event_time", None)
    if named is not None:
        return str(named), f"it is the event_time of '{name}'"
    times = [field.name for field in schema if pt.is_timestamp(field.type)]
    return (times[0], f"it is the only timestamp of '{name}'") if len(times) == 1 else (None, "")


def _operator(entry: Operator) -> Known:
    """A query says what it emits; a function in Python does not."""
    if isinstance(entry.function, Compiled):
        return replace(entry.function.plan.emits, name=entry.name, slices=entry.slices)
    return Known(entry.name, slices=entry.slices)


def assumed_streams(query: Query) -> dict[str, Known]:
    """The streams of a query that is looked at without its topology: each has an event time, whatever its column."""
    why = "no application is given; its source will name the column"
    return {name: Known(name, time=f"<event time of {name}>", why_time=why) for name, _ in read_streams(query)}


def read_streams(query: Query) -> list[tuple[str, Node]]:
    """The streams that a query reads, and where it names them."""
    nodes = walk(query.source)
    return [
        (node.name if isinstance(node, Stream) else node.stream, node)
        for node in nodes
        if isinstance(node, Stream | Step)
    ]
