"""Prints a syntax tree as text that is read back as the same tree."""

from __future__ import annotations

import re

from understudy.queries import syntax as s

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
KEYWORDS = frozenset(
    [
        "SELECT",
        "FROM",
        "AS",
        "INNER",
        "LEFT",
        "OUTER",
        "JOIN",
        "ON",
        "PATTERN",
        "WITHIN",
        "EVERY",
        "TIME",
        "LATE",
        "WHERE",
        "GROUP",
        "BY",
        "HAVING",
        "AND",
        "OR",
        "NOT",
        "LIKE",
        "BETWEEN",
        "IN",
        "IS",
        "NULL",
        "TRUE",
        "FALSE",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "CAST",
    ]
)
_LEVELS = {"OR": 1, "AND": 2, "LIKE": 4, "=": 4, "<>": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "+": 5, "-": 5}
_LEVELS |= {"*": 6, "/": 6, "%": 6}
_NOT, _CONDITION, _SUM, _SIGN, _ATOM = 3, 4, 5, 7, 8
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms"))


def show(node: s.Node) -> str:
    """The text of a query, or of any part of it.

    Examples
    --------
    >>> show(s.Binary("*", s.Binary("+", s.Column("a"), s.Literal(1)), s.Column("b", "t")))
    '(a + 1) * t.b'
    """
    if isinstance(node, s.Query):
        return _query(node)
    if isinstance(node, s.Item):
        return show(node.value) + (f" AS {quoted(node.name)}" if node.name else "")
    if isinstance(node, s.Stream):
        return quoted(node.name) + (f" AS {quoted(node.alias)}" if node.alias else "")
    if isinstance(node, s.Join):
        kind = "JOIN" if node.kind == "inner" else "LEFT JOIN"
        return f"{show(node.left)} {kind} {show(node.right)} ON {show(node.on)}"
    if isinstance(node, s.Pattern):
        return "PATTERN " + " -> ".join(show(step) for step in node.steps)
    if isinstance(node, s.Step):
        condition = f"({show(node.condition)})" if node.condition is not None else ""
        return f"{quoted(node.name)}={quoted(node.stream)}{condition}"
    if isinstance(node, s.Timing):
        return " ".join(_timing(node))
    if isinstance(node, s.Duration):
        return duration(node.ms)
    return _expression(node)[0]


def duration(ms: int) -> str:
    """A time in the largest unit that needs no fraction."""
    size, unit = next((size, unit) for size, unit in _UNITS if ms % size == 0) if ms else (1, "s")
    return f"{ms // size} {unit}"


def quoted(name: str) -> str:
    plain = _PLAIN.fullmatch(name) and name.upper() not in KEYWORDS
    return name if plain else "`" + name.replace("`", "``") + "`"


def _query(query: s.Query) -> str:
    parts = ["SELECT", ", ".join(show(item) for item in query.items) or "*", "FROM", show(query.source)]
    parts += _timing(query.timing)
    if query.where is not None:
        parts += ["WHERE", show(query.where)]
    if query.groups:
        parts += ["GROUP BY", ", ".join(show(group) for group in query.groups)]
    if query.having is not None:
        parts += ["HAVING", show(query.having)]
    return " ".join(parts)


def _timing(timing: s.Timing) -> list[str]:
    parts = [("WITHIN", timing.within), ("EVERY", timing.every), ("TIME", timing.time), ("LATE", timing.late)]
    return [f"{word} {show(value)}" for word, value in parts if value is not None]


def _expression(node: s.Node) -> tuple[str, int]:
    """The text, and how tightly it holds together: 8 for a single word, 1 for OR."""
    if isinstance(node, s.Binary):
        level = _LEVELS[node.operator]
        # Comparisons do not chain; other operators are read from the left.
        first = level + 1 if level == _CONDITION else level
        return f"{_at(node.left, first)} {node.operator} {_at(node.right, level + 1)}", level
    if isinstance(node, s.Unary):
        return _unary(node)
    if isinstance(node, s.Between):
        word = "NOT BETWEEN" if node.negated else "BETWEEN"
        return f"{_at(node.value, _SUM)} {word} {_at(node.low, _SUM)} AND {_at(node.high, _SUM)}", _CONDITION
    if isinstance(node, s.Among):
        choices = ", ".join(show(choice) for choice in node.choices)
        return f"{_at(node.value, _SUM)} {'NOT IN' if node.negated else 'IN'} ({choices})", _CONDITION
    if isinstance(node, s.Missing):
        return f"{_at(node.value, _SUM)} IS {'NOT NULL' if node.negated else 'NULL'}", _CONDITION
    return _atom(node), _ATOM


def _at(node: s.Node, level: int) -> str:
    text, own = _expression(node)
    return text if own >= level else f"({text})"


def _unary(node: s.Unary) -> tuple[str, int]:
    if node.operator == "NOT":
        return f"NOT {_at(node.operand, _NOT)}", _NOT
    text = _at(node.operand, _SIGN)
    # Two signs in a row would begin a comment.
    return f"-({text})" if text.startswith("-") else f"-{text}", _SIGN


def _atom(node: s.Node) -> str:
    if isinstance(node, s.Column):
        return f"{quoted(node.stream)}.{quoted(node.name)}" if node.stream is not None else quoted(node.name)
    if isinstance(node, s.Literal):
        return _literal(node.value)
    if isinstance(node, s.Call):
        arguments = ", ".join(show(argument) for argument in node.arguments)
        return f"{node.name}({arguments or ('*' if node.name == 'count' else '')})"
    if isinstance(node, s.Cast):
        return f"CAST({show(node.value)} AS {node.type})"
    if isinstance(node, s.Branch):
        return f"WHEN {show(node.condition)} THEN {show(node.value)}"
    if isinstance(node, s.Case):
        otherwise = f" ELSE {show(node.otherwise)}" if node.otherwise is not None else ""
        return f"CASE {' '.join(show(branch) for branch in node.branches)}{otherwise} END"
    raise TypeError(f"{type(node).__name__} is not an expression")


def _literal(value: int | float | str | bool | None) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    return repr(value)
