"""The topology a user writes: sources, operators, sinks, and who reads whom."""

from __future__ import annotations

import inspect
import math
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal, get_args

from understudy.errors import InvalidInput
from understudy.model.costs import EVERYTHING, Costs
from understudy.model.durations import seconds as seconds
from understudy.model.names import valid_name
from understudy.model.recovery import ACTIVE, Recovery

OutputMode = Literal["append", "update", "complete"]
Inputs = Literal["independent", "correlated"]
Order = Literal["epoch", "strict"]


@dataclass(frozen=True)
class Source:
    name: str
    source: Any
    slices: int


@dataclass(frozen=True)
class Operator:
    """A function from one streaming DataFrame per input to one; still callable, so that it can be tested alone."""

    name: str
    inputs: tuple[str, ...]
    function: Callable[..., Any]
    key: tuple[str, ...]
    slices: int
    output_mode: OutputMode
    input: Inputs
    order: Order
    time: str | None
    deterministic: bool
    fuse: bool
    recovery: Recovery

    def __call__(self, *frames: Any) -> Any:
        return self.function(*frames)


@dataclass(frozen=True)
class Sink:
    name: str
    stream: str
    sink: Any


Stream = Source | Operator | str


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
        if not valid_name(self.name):
            raise _bad_name("topology", self.name)
        if not 0 < self.epoch_s < math.inf:
            raise InvalidInput(
                f"topology '{self.name}' has an epoch of {self.epoch_s:g} s",
                why="an epoch is the piece of time that is processed and committed at once",
                fix='give a positive time, like epoch="500 ms"',
            )

    def source(self, name: str, source: Any, slices: int = 1) -> Source:
        entry = Source(name, source, slices)
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
                recovery=recovery or Recovery(),
            )
            self.operators.append(entry)
            return entry

        return add

    def sink(self, name: str, stream: Stream, sink: Any) -> Sink:
        entry = Sink(name, stream_name(stream), sink)
        self.sinks.append(entry)
        return entry

    def validate(self) -> None:
        """Everything that can be known without Spark; the first mistake found is raised."""
        entries: list[Source | Operator | Sink] = [*self.sources, *self.operators, *self.sinks]
        _check_names(entries)
        if not self.sources or not self.sinks:
            missing = "source" if not self.sources else "sink"
            raise InvalidInput(
                f"topology '{self.name}' has no {missing}",
                why="data must come from somewhere and go somewhere",
                fix=f"add one with app.{missing}(…)",
            )
        for entry in entries:
            _check_entry(entry)
        self._check_edges()
        _check_targets(self.sinks)

    @property
    def streams(self) -> dict[str, Source | Operator]:
        """What can be read, by name."""
        entries: list[Source | Operator] = [*self.sources, *self.operators]
        return {entry.name: entry for entry in entries}

    def _check_edges(self) -> None:
        streams = self.streams
        edges = {op.name: op.inputs for op in self.operators} | {sink.name: (sink.stream,) for sink in self.sinks}
        for reader, inputs in edges.items():
            for stream in inputs:
                if stream not in streams:
                    raise InvalidInput(
                        f"'{reader}' reads '{stream}', which does not exist",
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
    return (key,) if isinstance(key, str) else tuple(key)


def _check_names(entries: Sequence[Source | Operator | Sink]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if not valid_name(entry.name):
            raise _bad_name(type(entry).__name__.lower(), entry.name)
        if entry.name in seen:
            raise InvalidInput(
                f"the name '{entry.name}' is used twice",
                why="sources, operators and sinks of a topology share one set of names",
                fix="rename one of them",
            )
        seen.add(entry.name)


def _check_entry(entry: Source | Operator | Sink) -> None:
    slices = 1 if isinstance(entry, Sink) else entry.slices
    if not isinstance(slices, int) or slices < 1:
        raise InvalidInput(
            f"'{entry.name}' has {slices!r} slices", why="slices do the work", fix="give a whole number, 1 or more"
        )
    if isinstance(entry, Operator):
        _check_operator(entry)


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


def _check_operator(operator: Operator) -> None:
    where = f"operator '{operator.name}'"
    if not operator.inputs:
        raise InvalidInput(f"{where} reads nothing", why="an operator has at least one input", fix="name its inputs")
    for option, kind in (("output_mode", OutputMode), ("input", Inputs), ("order", Order)):
        value, allowed = getattr(operator, option), get_args(kind)
        if value not in allowed:
            raise InvalidInput(
                f"{where} has {option}='{value}'", why="there is no such choice", fix=f"use one of {', '.join(allowed)}"
            )
    if not operator.deterministic and operator.recovery.scheme in ACTIVE:
        raise InvalidInput(
            f"{where} is not deterministic and asks for {operator.recovery.scheme}",
            why="two working copies would come to different results",
            fix="use passive_standby_hot or a scheme below it, or make the operator deterministic",
        )
    if operator.order == "strict" and operator.time is None:
        raise InvalidInput(
            f"{where} has order='strict' and no time column",
            why="strict order sorts the rows of an epoch by their time",
            fix='name the column, like time="at"',
        )
    _check_arity(operator)


def _check_arity(operator: Operator) -> None:
    try:
        inspect.signature(operator.function).bind(*operator.inputs)
    except TypeError as error:
        raise InvalidInput(
            f"operator '{operator.name}' has {len(operator.inputs)} inputs, which its function does not take",
            why=f"it is called with one DataFrame per input ({error})",
            fix="let the function have one parameter per input",
        ) from None


def _bad_name(kind: str, name: str) -> InvalidInput:
    return InvalidInput(
        f"'{name}' cannot be the name of a {kind}",
        why="names become directories, metrics and command-line words",
        fix="use letters, digits, '-' and '_', starting with a letter",
    )
