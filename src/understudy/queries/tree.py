"""Turns lark's parse tree into ours. Imported only where lark is installed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from lark import Token, Transformer, v_args
from lark.tree import Meta

from understudy.queries import syntax as s
from understudy.queries.functions import TYPES
from understudy.queries.places import Span, Text, did_you_mean

UNITS_MS = {
    **dict.fromkeys(["ms", "millisecond", "milliseconds"], 1),
    **dict.fromkeys(["s", "sec", "second", "seconds"], 1000),
    **dict.fromkeys(["m", "min", "minute", "minutes"], 60_000),
    **dict.fromkeys(["h", "hour", "hours"], 3_600_000),
    **dict.fromkeys(["d", "day", "days"], 86_400_000),
}
_LARGEST = 2**63 - 1
"""Of Spark's whole numbers, and milliseconds."""


def _span(meta: Meta) -> Span:
    return Span(meta.start_pos, meta.end_pos)


@v_args(meta=True)
class Builder(Transformer[Token, Any]):
    """One method for each rule of the grammar."""

    def __init__(self, text: Text) -> None:
        super().__init__()
        self.text = text

    def start(self, _: Meta, parts: list[s.Query]) -> s.Query:
        return parts[0]

    def query(self, meta: Meta, parts: list[Any]) -> s.Query:
        items, source, *clauses = parts
        given = dict(clauses)
        within, every = given.pop("within", (None, None))
        timing = s.Timing(within, every, given.pop("time", None), given.pop("late", None))
        return s.Query(items, source, timing, **given, span=_span(meta))

    def everything(self, _: Meta, __: list[Token]) -> tuple[s.Item, ...]:
        return ()

    def listed(self, _: Meta, parts: list[s.Item]) -> tuple[s.Item, ...]:
        return tuple(parts)

    def item(self, meta: Meta, parts: list[Any]) -> s.Item:
        return s.Item(parts[0], _name(parts[1]) if len(parts) > 1 else None, span=_span(meta))

    def stream(self, meta: Meta, parts: list[Token]) -> s.Stream:
        return s.Stream(_name(parts[0]), _name(parts[1]) if len(parts) > 1 else None, span=_span(meta))

    def inner(self, _: Meta, __: list[Token]) -> str:
        return "inner"

    def left(self, _: Meta, __: list[Token]) -> str:
        return "left"

    def join(self, meta: Meta, parts: list[Any]) -> s.Join:
        left, kind, right, condition = parts
        return s.Join(left, right, condition, kind, span=_span(meta))

    def step(self, meta: Meta, parts: list[Any]) -> s.Step:
        condition = parts[2] if len(parts) > 2 else None
        return s.Step(_name(parts[0]), _name(parts[1]), condition, span=_span(meta))

    def pattern(self, meta: Meta, parts: list[Any]) -> s.Pattern:
        return s.Pattern(tuple(part for part in parts if isinstance(part, s.Step)), span=_span(meta))

    def within(self, _: Meta, parts: list[s.Duration]) -> tuple[str, Any]:
        return "within", (parts[0], parts[1] if len(parts) > 1 else None)

    def time(self, meta: Meta, parts: list[Token]) -> tuple[str, s.Column]:
        return "time", s.Column(_name(parts[0]), span=Span(parts[0].start_pos or 0, meta.end_pos))

    def late(self, _: Meta, parts: list[s.Duration]) -> tuple[str, s.Duration]:
        return "late", parts[0]

    def where(self, _: Meta, parts: list[s.Expression]) -> tuple[str, s.Expression]:
        return "where", parts[0]

    def group(self, _: Meta, parts: list[s.Expression]) -> tuple[str, tuple[s.Expression, ...]]:
        return "groups", tuple(parts)

    def having(self, _: Meta, parts: list[s.Expression]) -> tuple[str, s.Expression]:
        return "having", parts[0]

    def duration(self, meta: Meta, parts: list[Token]) -> s.Duration:
        text = str(parts[0])
        number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ").rstrip()
        unit = text[len(number) :].strip().lower()
        if unit not in UNITS_MS:
            raise self.text.mistake(
                _span(meta),
                f"'{unit}' is not a unit of time",
                why="a time is a number and one of ms, s, m, h, d, short or in full",
                fix=f"write it like {number} s",
            )
        ms = Decimal(number) * UNITS_MS[unit]
        if ms != ms.to_integral_value() or ms > _LARGEST:
            raise self.text.mistake(
                _span(meta),
                f"'{text}' cannot be used as a time",
                why="times are whole milliseconds, at most 2^63 of them",
                fix="round it to milliseconds",
            )
        return s.Duration(int(ms), span=_span(meta))

    def binary(self, meta: Meta, parts: list[Any]) -> s.Binary:
        operator = str(parts[1]).upper()
        return s.Binary("<>" if operator == "!=" else operator, parts[0], parts[2], span=_span(meta))

    def equal(self, meta: Meta, parts: list[s.Expression]) -> s.Binary:
        return s.Binary("=", parts[0], parts[1], span=_span(meta))

    def unlike(self, meta: Meta, parts: list[s.Expression]) -> s.Unary:
        return s.Unary("NOT", s.Binary("LIKE", parts[0], parts[1], span=_span(meta)), span=_span(meta))

    def unary(self, meta: Meta, parts: list[Any]) -> s.Unary:
        return s.Unary("-" if parts[0] == "-" else "NOT", parts[1], span=_span(meta))

    def between(self, meta: Meta, parts: list[s.Expression]) -> s.Between:
        return s.Between(parts[0], parts[1], parts[2], span=_span(meta))

    def not_between(self, meta: Meta, parts: list[s.Expression]) -> s.Between:
        return s.Between(parts[0], parts[1], parts[2], negated=True, span=_span(meta))

    def among(self, meta: Meta, parts: list[s.Expression]) -> s.Among:
        return s.Among(parts[0], tuple(parts[1:]), span=_span(meta))

    def not_among(self, meta: Meta, parts: list[s.Expression]) -> s.Among:
        return s.Among(parts[0], tuple(parts[1:]), negated=True, span=_span(meta))

    def missing(self, meta: Meta, parts: list[s.Expression]) -> s.Missing:
        return s.Missing(parts[0], span=_span(meta))

    def present(self, meta: Meta, parts: list[s.Expression]) -> s.Missing:
        return s.Missing(parts[0], negated=True, span=_span(meta))

    def number(self, meta: Meta, parts: list[Token]) -> s.Literal:
        text = str(parts[0])
        value = int(text) if text.isdigit() else float(text)
        if value in (float("inf"),) or (isinstance(value, int) and value > _LARGEST):
            raise self.text.mistake(
                _span(meta), f"{text} is too large", why="whole numbers have 64 bits", fix="write a smaller number"
            )
        return s.Literal(value, span=_span(meta))

    def string(self, meta: Meta, parts: list[Token]) -> s.Literal:
        return s.Literal(str(parts[0])[1:-1].replace("''", "'"), span=_span(meta))

    def true(self, meta: Meta, _: list[Token]) -> s.Literal:
        return s.Literal(True, span=_span(meta))

    def false(self, meta: Meta, _: list[Token]) -> s.Literal:
        return s.Literal(False, span=_span(meta))

    def null(self, meta: Meta, _: list[Token]) -> s.Literal:
        return s.Literal(None, span=_span(meta))

    def column(self, meta: Meta, parts: list[Token]) -> s.Column:
        return s.Column(_name(parts[0]), span=_span(meta))

    def qualified(self, meta: Meta, parts: list[Token]) -> s.Column:
        return s.Column(_name(parts[1]), _name(parts[0]), span=_span(meta))

    def count_all(self, meta: Meta, parts: list[Token]) -> s.Call:
        if parts[0].lower() != "count":
            raise self.text.mistake(
                _span(meta),
                f"{parts[0]}(*) means nothing",
                why="only count(*) takes all rows as they are",
                fix=f"name a column: {parts[0]}(price)",
            )
        return s.Call("count", (), span=_span(meta))

    def call(self, meta: Meta, parts: list[Any]) -> s.Call:
        return s.Call(str(parts[0]).lower(), tuple(parts[1:]), span=_span(meta))

    def branch(self, meta: Meta, parts: list[s.Expression]) -> s.Branch:
        return s.Branch(parts[0], parts[1], span=_span(meta))

    def case(self, meta: Meta, parts: list[s.Expression]) -> s.Case:
        branches = tuple(part for part in parts if isinstance(part, s.Branch))
        return s.Case(branches, parts[-1] if len(parts) > len(branches) else None, span=_span(meta))

    def cast(self, meta: Meta, parts: list[Any]) -> s.Cast:
        return s.Cast(parts[0], parts[1], span=_span(meta))

    def type(self, meta: Meta, parts: list[Token]) -> str:
        name, sizes = str(parts[0]).lower(), [str(part) for part in parts[1:]]
        if name not in TYPES or (sizes and name != "decimal") or not all(size.isdigit() for size in sizes):
            raise self.text.mistake(
                _span(meta),
                f"'{name}' is not a type to cast to" if not sizes else f"{name}({', '.join(sizes)}) is not a type",
                why=f"the types are {', '.join(TYPES)}",
                fix=did_you_mean(name, list(TYPES), "use one of them"),
            )
        return f"{name}({','.join(sizes)})" if sizes else name

    def name(self, _: Meta, parts: list[Token]) -> Token:
        return parts[0]


def _name(token: Token) -> str:
    """A name as it is meant: without backticks."""
    text = str(token)
    return text[1:-1].replace("``", "`") if token.type == "QUOTED" else text
