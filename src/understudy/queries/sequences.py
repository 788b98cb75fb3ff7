"""Sequences on Spark: the rows of all inputs as events, and `transformWithState` over the events of a key.

An event waits until the watermark has passed it, because an earlier one may still come. Then `matching.Matcher` takes
it in the order of time. State is kept in plain columns, and times in whole microseconds: time zones of a machine play
no part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from understudy.queries import syntax as s
from understudy.queries.frames import column, filtered, named, quoted, selected, with_time
from understudy.queries.kinds import kind_of
from understudy.queries.matching import Event, Match, Matcher
from understudy.queries.places import Text
from understudy.queries.plans import Output, PatternStep, Plan, SequencePlan

_KINDS: tuple[tuple[tuple[type[T.DataType], ...], str], ...] = (
    ((T.ByteType, T.ShortType, T.IntegerType, T.LongType), "whole number"),
    ((T.FloatType, T.DoubleType), "double"),
    ((T.DecimalType,), "decimal"),
    ((T.StringType,), "text"),
    ((T.BooleanType,), "truth value"),
    ((T.TimestampType, T.TimestampNTZType), "time"),
    ((T.DateType,), "date"),
    ((T.BinaryType,), "bytes"),
    ((T.NullType,), "null"),
)


def matches(plan: Plan, work: SequencePlan, inputs: Sequence[DataFrame]) -> DataFrame:
    """One row for every complete match."""
    slots = _slots(plan.text, work, inputs)
    _check_kinds(plan.text, work, slots)
    events = reduce(_union, (_events(plan, work, number, frame) for number, frame in enumerate(inputs)))
    keys = [f"_k{number}" for number in range(max(1, len(work.keys)))]
    shape = Shape.of(work, slots)
    found = events.groupBy(*keys).transformWithState(
        Sequences(Matcher.of(work), shape), shape.complete, "append", "eventTime"
    )

    def carried(one: s.Column) -> Column:
        step = next(number for number, step in enumerate(work.steps) if step.name == one.stream)
        return _decoded(F.col(_at_step(step, one.name)), slots[one.name])

    return selected(plan.text, filtered(plan.text, found, work.where, carried), work.outputs, carried)


def _union(left: DataFrame, right: DataFrame) -> DataFrame:
    return left.unionByName(right, allowMissingColumns=True)


def _events(plan: Plan, work: SequencePlan, number: int, frame: DataFrame) -> DataFrame:
    """The rows of an input that fulfil a step, as far as each row alone decides that."""
    time = work.times[number]
    frame = with_time(plan.text, frame, time, plan.query.source.span)
    keys = [F.col(quoted(columns[number])).alias(f"_k{part}") for part, columns in enumerate(work.keys)]
    _check_conditions(plan.text, work, number, frame)
    bits = [_bit(position, step) for position, step in enumerate(work.steps) if step.input == number]
    values = [_encoded(frame, one) for one in work.carried[number]]
    at = F.col(quoted(time.column))
    made = frame.select(
        *(keys or [F.lit(0).alias("_k0")]),
        at.alias("_at"),
        F.unix_micros(at.cast("timestamp")).alias("_us"),
        reduce(Column.bitwiseOR, bits).alias("_steps"),
        *values,
    )
    return made.where((F.col("_steps") != 0) & F.col("_us").isNotNull())


def _check_conditions(text: Text, work: SequencePlan, number: int, frame: DataFrame) -> None:
    """Lets Spark analyse each condition by itself, so that an error points at it."""
    for step in work.steps:
        for part in s.conjuncts(step.own if step.input == number else None):
            filtered(text, frame, part, named)


def _bit(position: int, step: PatternStep) -> Column:
    if step.own is None:
        return F.lit(1 << position)
    return F.when(column(step.own, named), F.lit(1 << position)).otherwise(F.lit(0))


def _encoded(frame: DataFrame, output: Output) -> Column:
    value = column(output.value, named)
    kind = frame.select(value).schema[0].dataType
    if isinstance(kind, T.TimestampType | T.TimestampNTZType):
        value = F.unix_micros(value.cast("timestamp"))
    return value.alias(output.name)


def _decoded(value: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.TimestampType):
        return F.timestamp_micros(value)
    return F.timestamp_micros(value).cast("timestamp_ntz") if isinstance(kind, T.TimestampNTZType) else value


def _slots(text: Text, work: SequencePlan, inputs: Sequence[DataFrame]) -> dict[str, T.DataType]:
    """The type of every carried value, as its input has it."""
    found = {}
    for frame, outputs in zip(inputs, work.carried, strict=True):
        if outputs:
            for output, kind in zip(outputs, selected(text, frame, outputs, named).schema, strict=True):
                found[output.name] = kind.dataType
                _kind(text, output.value, kind.dataType)
    return found


def _kind(text: Text, value: s.Node, type_: T.DataType) -> str:
    kind = next((kind for types, kind in _KINDS if isinstance(type_, types)), None)
    if kind is None:
        raise text.mistake(
            value.span,
            f"a column of type {type_.simpleString()} cannot be part of a sequence",
            why="plain values are kept while a match is not complete",
            fix="select a part of it in a query of its own, and let the sequence read that",
        )
    return kind


def _check_kinds(text: Text, work: SequencePlan, slots: Mapping[str, T.DataType]) -> None:
    known = {
        (step.name, one.name): _kind(text, one.value, slots[one.name])
        for step in work.steps
        for one in work.carried[step.input]
    }
    for step in work.steps:
        if step.across is not None:
            kind_of(step.across, known, text)


def _at_step(step: int, slot: str) -> str:
    return f"s{step}_{slot}"


@dataclass(frozen=True)
class Shape:
    """How events and matches lie in rows.

    Parameters
    ----------
    slots
        The names of all carried values.
    of_step
        For every step, the names of those that its events carry.
    pending, begun, complete
        Columns of an event that waits, of a match that is not complete, and of one that is.
    """

    slots: tuple[str, ...]
    of_step: tuple[tuple[str, ...], ...]
    pending: T.StructType
    begun: T.StructType
    complete: T.StructType

    @classmethod
    def of(cls, work: SequencePlan, types: Mapping[str, T.DataType]) -> Shape:
        of_step = tuple(tuple(one.name for one in work.carried[step.input]) for step in work.steps)
        kept = {slot: T.LongType() if _kind_is_time(kind) else kind for slot, kind in types.items()}
        step_fields = [[T.StructField(_at_step(n, slot), kept[slot]) for slot in own] for n, own in enumerate(of_step)]
        begun = [T.StructField("steps", T.IntegerType())]
        for number, fields in enumerate(step_fields[:-1]):
            begun += [T.StructField(f"at{number}", T.LongType()), *fields]
        head = [T.StructField("at", T.LongType()), T.StructField("steps", T.IntegerType())]
        return cls(
            slots=tuple(kept),
            of_step=of_step,
            pending=T.StructType(head + [T.StructField(slot, kind) for slot, kind in kept.items()]),
            begun=T.StructType(begun),
            complete=T.StructType([T.StructField("_last", T.LongType()), *(f for own in step_fields for f in own)]),
        )

    def event(self, at: int, steps: int, values: Mapping[str, Any]) -> Event:
        """Only the values that its steps need, which are those of its input."""
        first = (steps & -steps).bit_length() - 1
        return Event(at, steps, tuple(values[slot] for slot in self.of_step[first]))

    def pending_row(self, event: Event) -> tuple[Any, ...]:
        first = (event.steps & -event.steps).bit_length() - 1
        values = dict(zip(self.of_step[first], event.values, strict=True))
        return (event.at, event.steps, *(values.get(slot) for slot in self.slots))

    def pending_event(self, row: Sequence[Any]) -> Event:
        return self.event(row[0], row[1], dict(zip(self.slots, row[2:], strict=True)))

    def begun_row(self, match: Match) -> tuple[Any, ...]:
        row: list[Any] = [len(match)]
        for number, slots in enumerate(self.of_step[:-1]):
            filled = number < len(match)
            row += [match[number].at, *match[number].values] if filled else [None] * (1 + len(slots))
        return tuple(row)

    def begun_match(self, row: Sequence[Any]) -> Match:
        """Which steps an event once fulfilled no longer counts when it is part of a match."""
        events, place = [], 1
        for number, slots in enumerate(self.of_step[: row[0]]):
            events.append(Event(row[place], 1 << number, tuple(row[place + 1 : place + 1 + len(slots)])))
            place += 1 + len(slots)
        return tuple(events)

    def complete_row(self, match: Match) -> Row:
        return Row(*self.complete.names)(match[-1].at, *(value for event in match for value in event.values))


def _kind_is_time(kind: T.DataType) -> bool:
    return isinstance(kind, T.TimestampType | T.TimestampNTZType)


class Sequences(StatefulProcessor):
    """The events of one key: those that the watermark has not passed, and matches that are not complete."""

    def __init__(self, matcher: Matcher, shape: Shape) -> None:
        self._matcher = matcher
        self._shape = shape

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._pending = handle.getListState("pending", self._shape.pending)
        self._begun = handle.getListState("begun", self._shape.begun)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803, ARG002
        new = [self._shape.event(row["_us"], row["_steps"], row.asDict()) for row in rows]
        return self._turn(new, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803, ARG002
        return self._turn([], timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        """Nothing is open."""

    def _turn(self, new: list[Event], watermark_ms: int) -> Iterator[Row]:
        watermark = watermark_ms * 1000
        waiting = [self._shape.pending_event(row) for row in self._pending.get()] + new
        due = [event for event in waiting if event.at <= watermark]
        later = [event for event in waiting if event.at > watermark]
        begun = [self._shape.begun_match(row) for row in self._begun.get()]
        begun, found = self._matcher.advance(begun, due)
        begun = self._matcher.alive(begun, watermark)
        _keep(self._pending, [self._shape.pending_row(event) for event in later])
        _keep(self._begun, [self._shape.begun_row(match) for match in begun])
        self._wake_up(later, begun)
        return iter([self._shape.complete_row(match) for match in found])

    def _wake_up(self, later: Sequence[Event], begun: Sequence[Match]) -> None:
        """When the next event is final, or the next match is too old: whatever comes first."""
        moments = [event.at for event in later] + [match[0].at + self._matcher.within_us for match in begun]
        if moments:
            self._handle.registerTimer(-(-min(moments) // 1000))


def _keep(state: Any, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        state.put(rows)
    else:
        state.clear()
