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
    name: str
    source: Any
    slices: int
    place: Place | None = field(default=None, compare=False)


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
    place: Place | None = field(default=None, compare=False)

    def __call__(self, *frames: Any) -> Any:
        return self.function(*frames)


@dataclass(frozen=True)
class Sink:
    name: str
    stream: str
    sink: Any
    place: Place | None = field(default=None, compare=False)


Stream = Source | Operator | str


def inputs_of(reader: Operator | Sink) -> tuple[str, ...]:
    return reader.inputs if isinstance(reader, Operator) else (reader.stream,)
