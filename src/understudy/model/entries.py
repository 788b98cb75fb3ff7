"""What a topology consists of: sources, operators and sinks, as the user's file defines them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from understudy.model.place import Place
from understudy.model.recovery import Recovery

OutputMode = Literal["append", "update", "complete"]
Inputs = Literal["independent", "correlated"]
Order = Literal["epoch", "strict"]


@dataclass(frozen=True)
class Source:
    """A source of a topology; made by `Topology.source`.

    Parameters
    ----------
    name : str
        Name of the stream.
    source : understudy.sources.Source
        Where its rows come from.
    slices : int
        Number of slices that read in parallel.
    place : Place, optional
        The line of the user's file that added it; errors name it.

    Examples
    --------
    >>> import understudy as us
    >>> app = us.Topology("words")
    >>> text = app.source("text", us.sources.Generator(lambda epoch, slice, rows, rng: None, "line string"))
    >>> text.name, text.slices
    ('text', 1)
    """

    name: str
    source: Any
    slices: int
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Operator:
    """A function from one streaming DataFrame per input to one; made by `Topology.operator`.

    It can still be called with DataFrames, so that the function can be tested alone.

    Parameters
    ----------
    name : str
        Name of the operator and of the stream it emits.
    inputs : tuple of str
        Names of the streams it reads.
    function : callable
        The user's function.
    key : tuple of str
        Columns by which the inputs are divided among the slices.
    slices : int
        Number of partitions.
    output_mode : {"append", "update", "complete"}
        Spark's output mode.
    input : {"independent", "correlated"}
        Whether output needs all inputs; only planning uses it.
    order : {"epoch", "strict"}
        Order of rows inside an epoch.
    time : str or None
        The column that ``order="strict"`` sorts by.
    deterministic : bool
        Whether equal input always gives equal output.
    fuse : bool
        Whether it may share a query with its neighbours.
    recovery : Recovery
        How its slices are protected.
    place : Place, optional
        The line of the user's file that added it; errors name it.

    Examples
    --------
    >>> import understudy as us
    >>> app = us.Topology("sums")
    >>> @app.operator("numbers")
    ... def doubled(values):
    ...     return [2 * value for value in values]
    >>> doubled([1, 2])
    [2, 4]
    """

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
    place: Place | None = field(default=None, compare=False)

    def __call__(self, *frames: Any) -> Any:
        return self.function(*frames)


@dataclass(frozen=True)
class Sink:
    """A sink of a topology; made by `Topology.sink`.

    Parameters
    ----------
    name : str
        Name of the sink.
    stream : str
        Name of the stream it writes.
    sink : understudy.sinks.Sink
        Where the rows go.
    place : Place, optional
        The line of the user's file that added it; errors name it.
    tentative : bool, optional
        Whether it gets tentative output; None if it gets it where it can take it.

    Examples
    --------
    >>> import understudy as us
    >>> us.Topology("words").sink("out", "counts", us.sinks.Console()).stream
    'counts'
    """

    name: str
    stream: str
    sink: Any
    place: Place | None = field(default=None, compare=False)
    tentative: bool | None = None

    @property
    def takes_tentative(self) -> bool:
        """Whether it gets tentative output, if the topology has any."""
        return bool(getattr(self.sink, "takes_tentative", False)) if self.tentative is None else self.tentative


Stream = Source | Operator | str


def inputs_of(reader: Operator | Sink) -> tuple[str, ...]:
    return reader.inputs if isinstance(reader, Operator) else (reader.stream,)
