"""What a query comes to: one operator of a topology, and the work its function does. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from understudy.model.entries import OutputMode
from understudy.queries.places import Text
from understudy.queries.syntax import Column, Expression, Query


@dataclass(frozen=True)
class Reason:
    """One thing that was derived, and from what."""

    about: str
    value: str
    why: str


@dataclass(frozen=True)
class Known:
    """What is known about a stream without Spark."""

    name: str
    columns: tuple[str, ...] | None = None
    """None for an operator in Python: only Spark can say what it returns."""
    time: str | None = None
    """The column with the time at which an event happened."""
    late_ms: int = 0
    """By how much its rows can be out of order, as far as the text of a query said so."""
    slices: int = 1
    why_time: str = ""


@dataclass(frozen=True)
class Output:
    """A value and the column it becomes."""

    name: str
    value: Expression


@dataclass(frozen=True)
class Time:
    """The event time of one input: by this column, waiting so long for rows out of order."""

    column: str
    late_ms: int


@dataclass(frozen=True)
class Window:
    length_ms: int
    every_ms: int


@dataclass(frozen=True)
class Selection:
    """Rows are kept or dropped, and changed, each by itself. No outputs means all columns."""

    where: Expression | None
    outputs: tuple[Output, ...]


@dataclass(frozen=True)
class Aggregation:
    """Groups of rows, in windows or since the beginning.

    `having` and `outputs` read groups and aggregates by their names here, and `window_start` and `window_end`.
    """

    time: Time | None
    window: Window | None
    where: Expression | None
    groups: tuple[Output, ...]
    aggregates: tuple[Output, ...]
    having: Expression | None
    outputs: tuple[Output, ...]


@dataclass(frozen=True)
class Side:
    """One side of a join: which input, and the name that columns are qualified with."""

    input: int
    alias: str
    time: Time


@dataclass(frozen=True)
class Joining:
    left: Side
    right: Side
    kind: Literal["inner", "left"]
    on: Expression
    within_ms: int
    where: Expression | None
    outputs: tuple[Output, ...]


@dataclass(frozen=True)
class PatternStep:
    """One step of a sequence.

    Parameters
    ----------
    name
        The name of the step in the text.
    input
        The input whose rows it looks at.
    own
        What the row alone must fulfil; Spark evaluates it.
    across
        What the row must fulfil together with those before it, over carried values; see `SequencePlan.carried`.
    """

    name: str
    input: int
    own: Expression | None
    across: Expression | None


@dataclass(frozen=True)
class SequencePlan:
    """Events of one key that follow each other within a time.

    Parameters
    ----------
    times
        The event time of every input.
    keys
        For every part of the key, its column in each input; nothing if all events are one group.
    steps
        In order.
    carried
        For every input, the values of its rows that are kept until a match is complete. Conditions across steps and
        `outputs` read them as ``Column(value, step)``.
    within_ms
        The longest time from the first event to the last.
    """

    times: tuple[Time, ...]
    keys: tuple[tuple[str, ...], ...]
    steps: tuple[PatternStep, ...]
    carried: tuple[tuple[Output, ...], ...]
    within_ms: int
    where: Expression | None
    outputs: tuple[Output, ...]


Work = Selection | Aggregation | Joining | SequencePlan


@dataclass(frozen=True)
class Plan:
    """A query as one operator of a topology."""

    text: Text
    query: Query
    inputs: tuple[str, ...]
    work: Work
    key: tuple[str, ...]
    slices: int
    output_mode: OutputMode
    emits: Known
    reasons: tuple[Reason, ...] = field(default=())

    @property
    def stateful(self) -> bool:
        return not isinstance(self.work, Selection)


WINDOW_COLUMNS = ("window_start", "window_end")


def reads_window(column: Column) -> bool:
    return column.stream is None and column.name.lower() in WINDOW_COLUMNS
