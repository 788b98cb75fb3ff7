"""The topology a user writes: sources, operators, sinks, and who reads whom."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from understudy.errors import InvalidInput
from understudy.model.costs import EVERYTHING, Costs
from understudy.model.durations import seconds as seconds
from understudy.model.entries import Inputs, Operator, Order, OutputMode, Sink, Source, Stream, inputs_of
from understudy.model.entry_checks import at, bad_name, check_columns, check_entry, check_key_types
from understudy.model.names import valid_name
from understudy.model.place import caller
from understudy.model.recovery import Recovery

__all__ = ["Operator", "OutputMode", "Sink", "Source", "Topology", "seconds", "stream_name"]


@dataclass
class Topology:
    """A directed acyclic graph of operators. Filled by the user's file, then only read.

    `costs` says what resources are worth; the controller weighs schemes by it where operators have an objective.
    """

    name: str
    epoch: str | float = "1 second"
    costs: Costs = EVERYTHING
    sources: list[Source] = field(default_factory=list, init=False)
    operators: list[Operator] = field(default_factory=list, init=False)
    sinks: list[Sink] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.epoch_s = seconds(self.epoch)
        if not isinstance(self.name, str) or not valid_name(self.name):
            raise bad_name("topology", self.name)
        if not 0 < self.epoch_s < math.inf:
            raise InvalidInput(
                f"topology '{self.name}' has an epoch of {self.epoch_s:g} s",
                why="an epoch is the piece of time that is processed and committed at once",
                fix='give a positive time, like epoch="500 ms"',
            )

    def source(self, name: str, source: Any, slices: int = 1) -> Source:
        entry = Source(name, source, slices, caller(1))
        check_entry(entry)
        self.sources.append(entry)
        return entry

    def operator(
        self,
        *inputs: Stream,
        name: str | None = None,
        key: str | Sequence[str] | None = None,
        slices: int = 1,
        output_mode: OutputMode = "append",
        input: Inputs = "independent",
        order: Order = "epoch",
        time: str | None = None,
        deterministic: bool = True,
        fuse: bool = True,
        recovery: Recovery | None = None,
    ) -> Callable[[Callable[..., Any]], Operator]:
        """Makes the decorated function an operator.

        `key` names the columns by which the inputs are divided among the slices; `order="strict"` sorts the rows of an
        epoch by the column `time`, across all channels; `fuse=False` keeps the operator in a query of its own.
        """

        def add(function: Callable[..., Any]) -> Operator:
            entry = Operator(
                name=name or function.__name__,
                inputs=tuple(stream_name(stream) for stream in inputs),
                function=function,
                key=_columns(key),
                slices=slices,
                output_mode=output_mode,
                input=input,
                order=order,
                time=time,
                deterministic=deterministic,
                fuse=fuse,
                recovery=Recovery() if recovery is None else recovery,
                place=caller(1),
            )
            check_entry(entry)
            self.operators.append(entry)
            return entry

        return add

    def sink(self, name: str, stream: Stream, sink: Any) -> Sink:
        entry = Sink(name, stream_name(stream), sink, caller(1))
        check_entry(entry)
        self.sinks.append(entry)
        return entry

    def validate(self) -> None:
        """Everything that can be known without Spark; the first mistake found is raised.

        What concerns one entry alone was checked when it was added.
        """
        entries: list[Source | Operator | Sink] = [*self.sources, *self.operators, *self.sinks]
        _check_names(entries)
        if not self.sources or not self.sinks:
            missing = "source" if not self.sources else "sink"
            raise InvalidInput(
                f"topology '{self.name}' has no {missing}",
                why="data must come from somewhere and go somewhere",
                fix=f"add one with app.{missing}(…)",
            )
        self._check_edges()
        _check_targets(self.sinks)
        self._check_all_read()
        self._check_columns()

    @property
    def streams(self) -> dict[str, Source | Operator]:
        """What can be read, by name."""
        entries: list[Source | Operator] = [*self.sources, *self.operators]
        return {entry.name: entry for entry in entries}

    def _check_edges(self) -> None:
        streams = self.streams
        readers: list[Operator | Sink] = [*self.operators, *self.sinks]
        edges = {reader.name: inputs_of(reader) for reader in readers}
        for reader in readers:
            for stream in inputs_of(reader):
                if stream not in streams:
                    raise InvalidInput(
                        f"{at(reader)}'{reader.name}' reads '{stream}', which does not exist",
                        why=f"the streams of '{self.name}' are {', '.join(sorted(streams))}",
                        fix="correct the name, or define the stream",
                    )
        try:
            TopologicalSorter(edges).prepare()
        except CycleError as error:
            cycle = " -> ".join(reversed(error.args[1]))
            raise InvalidInput(
                f"the operators form a cycle: {cycle}",
                why="an epoch of each would have to wait for the same epoch of the other",
                fix="break the cycle; state inside one operator can often replace it",
            ) from None

    def _check_all_read(self) -> None:
        readers: list[Operator | Sink] = [*self.operators, *self.sinks]
        read = {stream for reader in readers for stream in inputs_of(reader)}
        for name, entry in self.streams.items():
            if name not in read:
                raise InvalidInput(
                    f"{at(entry)}nobody reads '{name}'",
                    why="what it makes would be thrown away",
                    fix=f"add app.sink(…, '{name}', …), let an operator read it, or remove it",
                )

    def _check_columns(self) -> None:
        """Keys and times of operators that read sources; what operators return only Spark can say."""
        schemas = {source.name: source.source.schema for source in self.sources}
        for operator in self.operators:
            for stream in operator.inputs:
                if stream in schemas:
                    check_columns(operator, stream, schemas[stream].names)
            check_key_types(operator, schemas)

    def in_order(self) -> list[Operator]:
        """The operators, every one after those it reads."""
        by_name = {operator.name: operator for operator in self.operators}
        graph = {op.name: [name for name in op.inputs if name in by_name] for op in self.operators}
        return [by_name[name] for name in TopologicalSorter(graph).static_order()]


def stream_name(stream: Stream) -> str:
    """What is no stream keeps its text, so that the check can say who wanted to read it."""
    return stream if isinstance(stream, str) else str(getattr(stream, "name", stream))


def _columns(key: str | Sequence[str] | None) -> tuple[str, ...]:
    if key is None:
        return ()
    columns = (key,) if isinstance(key, str) or not isinstance(key, Sequence) else tuple(key)
    if not all(isinstance(column, str) for column in columns):
        raise InvalidInput(
            f"key={key!r} names no columns",
            why="a key is a column, or several, by which the inputs are divided among the slices",
            fix="give names, like key='word' or key=['user', 'shop']",
        )
    return columns


def _check_names(entries: Sequence[Source | Operator | Sink]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            raise InvalidInput(
                f"{at(entry)}the name '{entry.name}' is used twice",
                why="sources, operators and sinks of a topology share one set of names",
                fix="rename one of them",
            )
        seen.add(entry.name)


def _check_targets(sinks: Sequence[Sink]) -> None:
    """Two sinks in one directory would take each other's epochs for their own.

    Relative paths are compared as if they lay in one place, which they do. A path that reaches the same directory in
    another way (absolute, or through a link) is refused when the sink opens it, by the name in its claim.
    """
    writers: dict[str, str] = {}
    for sink in sinks:
        place = sink.sink.directory() if hasattr(sink.sink, "directory") else None
        if place is None:
            continue
        first = writers.setdefault(posixpath.normpath(str(place)), sink.name)
        if first != sink.name:
            raise InvalidInput(
                f"sinks '{first}' and '{sink.name}' both write to {place}",
                why="epochs are files with the epoch's number in their names; the second one's would be dropped",
                fix="give each sink a directory of its own",
            )
