"""Which column of which stream a name means, and whether functions are called rightly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from understudy.queries import syntax as s
from understudy.queries.functions import FUNCTIONS, REFUSED
from understudy.queries.places import QueryMistake, Text, did_you_mean
from understudy.queries.plans import Known


@dataclass(frozen=True)
class Scope:
    """The streams that an expression can read.

    Parameters
    ----------
    text
        The text that errors point into.
    streams
        Streams by the name that qualifies their columns, in the order of the text.
    inner
        The stream that a column without a qualifier belongs to; None if it must be looked for in all of them.
    """

    text: Text
    streams: Mapping[str, Known]
    inner: str | None = None

    def resolve(self, expression: Any, *, aggregates: bool = False) -> Any:
        """The same expression, every column with its qualifier and in the spelling of its stream.

        Aggregates are refused unless `aggregates` says otherwise.
        """
        for node in s.walk(expression):
            if isinstance(node, s.Call):
                self._check_call(node, aggregates=aggregates)
        return s.rewrite(expression, lambda node: self.column(node) if isinstance(node, s.Column) else None)

    def column(self, column: s.Column) -> s.Column:
        qualifier = column.stream if column.stream is not None else self._owner(column)
        known = self.streams.get(qualifier)
        if known is None:
            raise self.text.mistake(
                column.span,
                f"'{qualifier}' is not a stream of this query",
                why=f"columns are read from {', '.join(self.streams)}",
                fix=did_you_mean(qualifier, list(self.streams), "use one of these names"),
            )
        return s.Column(spelled(self.text, column, known), qualifier, span=column.span)

    def _owner(self, column: s.Column) -> str:
        if self.inner is not None:
            return self.inner
        if len(self.streams) == 1:
            return next(iter(self.streams))
        holders = [name for name, known in self.streams.items() if known.columns is None or has(known, column.name)]
        if len(holders) == 1:
            return holders[0]
        several = " and ".join(holders)
        raise self.text.mistake(
            column.span,
            f"'{column.name}' is not a column of {' or '.join(self.streams)}"
            if not holders
            else f"'{column.name}' may be a column of {several}",
            why=_columns_of(self.streams) if not holders else "a name must mean one column",
            fix=did_you_mean(column.name, _all_columns(self.streams), "name a column that is there")
            if not holders
            else f"write {holders[0]}.{column.name} or {holders[1]}.{column.name}",
        )

    def _check_call(self, call: s.Call, *, aggregates: bool) -> None:
        function = FUNCTIONS.get(call.name)
        if function is None:
            raise self._unknown(call)
        if not function.least <= len(call.arguments) <= function.most:
            raise self.text.mistake(
                call.span,
                f"{call.name} is given {len(call.arguments)} arguments",
                why=f"it takes {function.arity}",
                fix="add what is missing" if len(call.arguments) < function.least else "remove what is too much",
            )
        if function.aggregate and not aggregates:
            raise self.text.mistake(
                call.span,
                f"{call.name} cannot stand here",
                why="it counts over many rows, and here each row is looked at alone",
                fix="use it in SELECT or HAVING of a query with GROUP BY or WITHIN",
            )

    def _unknown(self, call: s.Call) -> QueryMistake:
        why = REFUSED.get(call.name)
        if why is not None:
            return self.text.mistake(
                call.span,
                f"{call.name} is not a function of the language",
                why=why,
                fix="leave it out, or write an operator in Python with deterministic=False",
            )
        return self.text.mistake(
            call.span,
            f"{call.name} is not a function of the language",
            why="the functions are listed in docs/queries.md",
            fix=did_you_mean(call.name, list(FUNCTIONS), "use another one, or write an operator in Python"),
        )


def has(known: Known, name: str) -> bool:
    return known.columns is not None and name.lower() in (column.lower() for column in known.columns)


def spelled(text: Text, column: s.Column, known: Known) -> str:
    """The column as the stream spells it: like Spark, a query does not tell upper from lower case."""
    if known.columns is None or column.name in known.columns:
        return column.name
    if has(known, column.name):
        return next(one for one in known.columns if one.lower() == column.name.lower())
    raise text.mistake(
        column.span,
        f"'{column.name}' is not a column of '{known.name}'",
        why=f"its columns are {', '.join(known.columns)}",
        fix=did_you_mean(column.name, known.columns, "name one of them"),
    )


def _columns_of(streams: Mapping[str, Known]) -> str:
    return "; ".join(f"{name} has {', '.join(known.columns or ())}" for name, known in streams.items())


def _all_columns(streams: Mapping[str, Known]) -> list[str]:
    return [column for known in streams.values() for column in known.columns or ()]


def unqualified(expression: Any) -> Any:
    """The same expression with the qualifiers left out, for a query that reads one stream."""
    return s.rewrite(
        expression, lambda node: s.Column(node.name, span=node.span) if isinstance(node, s.Column) else None
    )


def is_aggregate(node: s.Node) -> bool:
    return isinstance(node, s.Call) and node.name in FUNCTIONS and FUNCTIONS[node.name].aggregate


def has_aggregate(node: s.Node | None) -> bool:
    return node is not None and any(is_aggregate(one) for one in s.walk(node))
