"""Whether values of several events can be compared and combined in Python as Spark would do it."""

from __future__ import annotations

from collections.abc import Mapping

from understudy.queries import syntax as s
from understudy.queries.places import Text

UNKNOWN = "null"
NUMBERS = ("whole number", "double", "decimal")


def kind_of(expression: s.Node, known: Mapping[tuple[str, str], str], text: Text) -> str:
    """The kind of an expression's value: one of `NUMBERS`, "text", "truth value", "time", "date", "bytes" or "null".

    Parameters
    ----------
    expression
        Over carried values, which `known` gives by step and name.
    text
        Errors point into it.

    Raises
    ------
    QueryMistake
        If two kinds are compared or combined for which Spark and Python could give different results.
    """
    if isinstance(expression, s.Column):
        return known[expression.stream or "", expression.name]
    if isinstance(expression, s.Literal):
        return _literal(expression.value)
    kinds = [kind_of(child, known, text) for child in s.children(expression)]
    if isinstance(expression, s.Binary) and expression.operator in ("+", "-", "*"):
        return _number(expression, kinds, text)
    if isinstance(expression, s.Unary) and expression.operator == "-":
        return _number(expression, kinds, text)
    logical = isinstance(expression, s.Unary) or (isinstance(expression, s.Binary) and expression.operator in _LOGICAL)
    if logical:
        _all_of(expression, kinds, ("truth value",), text)
    elif not isinstance(expression, s.Missing):
        for other in kinds[1:]:
            _comparable(expression, kinds[0], other, text)
    return "truth value"


_LOGICAL = ("AND", "OR")


def _literal(value: object) -> str:
    kinds = ((bool, "truth value"), (int, "whole number"), (float, "double"), (str, "text"))
    return next((kind for type_, kind in kinds if isinstance(value, type_)), UNKNOWN)


def _number(expression: s.Node, kinds: list[str], text: Text) -> str:
    _all_of(expression, kinds, NUMBERS, text)
    found = sorted(set(kinds) - {UNKNOWN}, key=NUMBERS.index)
    for other in found[1:]:
        _comparable(expression, found[0], other, text)
    return found[-1] if found else UNKNOWN


def _all_of(expression: s.Node, kinds: list[str], allowed: tuple[str, ...], text: Text) -> None:
    wrong = next((kind for kind in kinds if kind not in (*allowed, UNKNOWN)), None)
    if wrong is not None:
        raise text.mistake(
            expression.span,
            f"a {wrong} is used here",
            why=f"between events, this needs a {' or a '.join(allowed)}",
            fix="compare it instead, or CAST it",
        )


def _comparable(expression: s.Node, left: str, right: str, text: Text) -> None:
    pair = {left, right} - {UNKNOWN}
    if len(pair) < 2 or pair <= {"whole number", "double"} or pair <= {"whole number", "decimal"}:
        return
    raise text.mistake(
        expression.span,
        f"a {left} meets a {right}",
        why="between events, values of one kind are compared: with two, rounding or spelling would decide",
        fix="make them alike with CAST(… AS double) or CAST(… AS string)",
    )
