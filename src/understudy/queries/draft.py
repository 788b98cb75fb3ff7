"""What the four kinds of queries have in common while they are derived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from understudy.model.entries import OutputMode
from understudy.queries import syntax as s
from understudy.queries.places import QueryMistake, Text
from understudy.queries.plans import Known, Output, Reason, Time, Work
from understudy.queries.printer import duration, show
from understudy.queries.scope import is_aggregate, spelled


@dataclass(frozen=True)
class Draft:
    """A derived query, before its slices are decided."""

    inputs: tuple[Known, ...]
    work: Work
    key: tuple[str, ...]
    emits: Known
    reasons: tuple[Reason, ...]
    output_mode: OutputMode = "append"
    why_mode: str = ""
    why_key: str = "it has no key, so all rows must meet in one slice"


def refuse(text: Text, node: s.Node, what: str, *, why: str, fix: str) -> QueryMistake:
    return text.mistake(node.span, what, why=why, fix=fix)


def items(query: s.Query, text: Text, resolve: Callable[[Any], Any]) -> tuple[Output, ...]:
    """What is selected, resolved, each under its own name; nothing for `*`."""
    outputs: list[Output] = []
    seen: dict[str, str] = {}
    for item in query.items:
        name = item.name or _default_name(item, text)
        first = seen.setdefault(name.lower(), name)
        if len(seen) == len(outputs):
            raise text.mistake(
                item.span,
                f"the name '{name}' is selected twice",
                why="readers of the stream could not tell the columns apart"
                if first == name
                else f"it differs from '{first}' only in upper and lower case, which Spark does not tell apart",
                fix=f"give one of them another name: {show(item.value)} AS …",
            )
        outputs.append(Output(name, resolve(item.value)))
    return tuple(outputs)


def _default_name(item: s.Item, text: Text) -> str:
    """A column keeps its name; avg(price) becomes avg_price, count(*) becomes count."""
    value = item.value
    if isinstance(value, s.Column):
        return value.name
    if isinstance(value, s.Call) and all(isinstance(one, s.Column) for one in value.arguments):
        return "_".join([value.name, *(one.name for one in value.arguments if isinstance(one, s.Column))])
    raise text.mistake(
        item.span,
        f"{show(value)} has no name",
        why="every column of a stream has one, and only columns and functions of columns bring theirs",
        fix=f"name it: {show(value)} AS …",
    )


def event_time(text: Text, timing: s.Timing, known: Known, needed_by: s.Node) -> tuple[Time, Reason]:
    """The column by which rows of this stream are ordered, and how long is waited for them."""
    late_ms = known.late_ms if timing.late is None else timing.late.ms
    if timing.time is not None:
        column, why = spelled(text, timing.time, known), "TIME names it"
    elif known.time is not None:
        column, why = known.time, known.why_time
    else:
        raise text.mistake(
            needed_by.span,
            f"the event time of '{known.name}' is not known",
            why="the text compares times of events, and the stream does not say which column holds them",
            fix="name the column: … WITHIN 10 s TIME at",
        )
    said = "LATE says so" if timing.late is not None else "LATE is not given"
    if timing.late is None and known.late_ms:
        said = f"'{known.name}' says so"
    value = f"{column} of '{known.name}', rows up to {duration(late_ms)} out of order"
    return Time(column, late_ms), Reason("event time", value, f"{why}; {said}")


def unread_timing(text: Text, timing: s.Timing) -> None:
    """Refuses clauses that would change nothing."""
    for node, word in (
        (timing.within, "WITHIN"),
        (timing.every, "EVERY"),
        (timing.time, "TIME"),
        (timing.late, "LATE"),
    ):
        if node is not None:
            raise refuse(
                text,
                node,
                f"{word} changes nothing here",
                why="no window, join or sequence of this query looks at time",
                fix="remove it, or add WITHIN and an aggregate",
            )


def no_groups(query: s.Query, text: Text, kind: str) -> None:
    """Joins and sequences keep state of their own; a second kind belongs into a query of its own."""
    aggregates = (node for item in query.items for node in s.walk(item) if isinstance(node, s.Call))
    found = next((one for one in aggregates if is_aggregate(one)), None)
    wrong = query.groups[0] if query.groups else (query.having or found)
    if wrong is not None:
        raise refuse(
            text,
            wrong,
            f"a {kind} cannot be grouped in the same query",
            why="a query keeps one kind of state, so that it can be divided by one key",
            fix=f"name this query without the group, and write a second one that reads the {kind}",
        )


def need_within(query: s.Query, text: Text, kind: str) -> s.Duration:
    """The bound of a join or a sequence, without which state would grow forever."""
    within, every = query.timing.within, query.timing.every
    if within is None:
        raise refuse(
            text,
            query.source,
            f"the {kind} has no bound in time",
            why="every row would have to be kept forever, because a partner may still come",
            fix="add one: … WITHIN 10 s",
        )
    if every is not None:
        raise refuse(
            text,
            every,
            f"EVERY means nothing for a {kind}",
            why="EVERY says how often a window of an aggregation begins",
            fix="remove it",
        )
    if within.ms <= 0:
        raise refuse(text, within, "the time is 0", why="WITHIN needs a time above 0", fix="write a longer one")
    return within


def need_items(query: s.Query, text: Text, kind: str) -> None:
    if not query.items:
        raise refuse(
            text,
            query.source,
            f"* cannot be selected from a {kind}",
            why="columns of several rows may have the same name",
            fix="name the columns: SELECT a.price AS first, b.price AS second",
        )
