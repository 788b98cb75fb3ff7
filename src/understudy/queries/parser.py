"""Reads the text of a query into its syntax tree. The grammar is `grammar.lark`."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.extras import need
from understudy.queries.places import QueryMistake, Span, Text, nearest
from understudy.queries.printer import KEYWORDS
from understudy.queries.syntax import Query

if TYPE_CHECKING:
    from lark import Lark, ParseTree, UnexpectedInput

_GRAMMAR = Path(__file__).with_name("grammar.lark")
LONGEST = 100_000
"""Characters; longer texts are made by mistake, and would be read for seconds."""
DEEPEST = 100
"""Levels of expressions; deeper ones would exhaust Python's stack, or Spark's."""

_WORDS = {
    "NAME": "a name",
    "QUOTED": "",
    "NUMBER": "a number",
    "STRING": "a text in quotes",
    "DURATION": "a time like 10 s",
    "LPAR": "'('",
    "RPAR": "')'",
    "COMMA": "','",
    "EQUAL": "'='",
    "DOT": "'.'",
    "SEMICOLON": "",
    "ARROW": "'->'",
    "STAR": "'*'",
    "$END": "the end",
}
"""How terminals of the grammar are called in errors; keywords keep their names, and "" is left out."""
_OPERATORS = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "COMPARISON", "EQUAL", "LIKE", "BETWEEN", "IN"})
_OPERATORS |= {"IS", "AND", "OR", "NOT"}
"""Named as one where an expression could go on, which is where a comparison could stand."""
_BEGINNING = frozenset({"NAME", "QUOTED", "NUMBER", "STRING", "LPAR", "MINUS", "CASE", "CAST", "NULL", "TRUE", "FALSE"})
"""Named as one where an expression could begin."""


def parse(text: str, name: str = "") -> Query:
    """The syntax tree of a query.

    Parameters
    ----------
    text
        The query, with or without a semicolon at its end.
    name
        How errors call it.

    Raises
    ------
    QueryMistake
        If the text is not a query; the error shows the place.
    Unavailable
        If lark is not installed.

    Examples
    --------
    >>> parse("SELECT symbol FROM trades WHERE price > 10").items[0].value
    Column(name='symbol', stream=None)
    """
    need(["lark"], extra="queries", user="us.query")
    from lark import UnexpectedInput
    from lark.exceptions import VisitError

    from understudy.queries.tree import Builder

    source = Text(text, name)
    if len(text) > LONGEST:
        raise source.mistake(
            Span(LONGEST, LONGEST + 1),
            f"the query has {len(text)} characters",
            why=f"at most {LONGEST} are read",
            fix="divide it into several queries, each reading the one before",
        )
    try:
        tree = _lark().parse(text)
    except UnexpectedInput as error:
        raise _unexpected(source, error) from None
    _check_depth(source, tree)
    try:
        query: Query = Builder(source).transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, QueryMistake):
            raise error.orig_exc from None
        raise
    return query


def _check_depth(source: Text, tree: ParseTree) -> None:
    waiting: list[tuple[Any, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST:
            start = node.meta.start_pos
            raise source.mistake(
                Span(start, start + 1),
                f"expressions are nested more than {DEEPEST} deep",
                why="every operator and every pair of parentheses around others is a level",
                fix="use IN (…) in place of many OR, or compute parts in a query of their own",
            )
        waiting += [(child, depth + 1) for child in node.children if hasattr(child, "children")]


@lru_cache(maxsize=1)
def _lark() -> Lark:
    from lark import Lark

    return Lark(_GRAMMAR.read_text(), parser="lalr", propagate_positions=True, maybe_placeholders=False)


def _unexpected(source: Text, error: UnexpectedInput) -> QueryMistake:
    from lark import UnexpectedCharacters, UnexpectedToken

    if isinstance(error, UnexpectedCharacters):
        return _unreadable(source, error.pos_in_stream or 0)
    if not isinstance(error, UnexpectedToken) or error.token.type == "$END":
        end = len(source.content.rstrip())
        wanted = error.accepts or error.expected if isinstance(error, UnexpectedToken) else set()
        return source.mistake(
            Span(end, end + 1), "the query ends too early", why=f"next could be {_listed(wanted)}", fix="complete it"
        )
    token = error.token
    start = token.start_pos or 0
    expected = error.accepts or error.expected
    return source.mistake(
        Span(start, start + len(token)),
        f"'{token}' was not expected here",
        why=f"next could be {_listed(expected)}",
        fix=_fix(str(token), expected),
    )


def _unreadable(source: Text, start: int) -> QueryMistake:
    found = source.content[start]
    fixes = {
        "'": "close the text with a second '",
        '"': "put texts in single quotes and unusual names in backticks",
        "`": "close the name with a second `",
    }
    return source.mistake(
        Span(start, start + 1),
        f"{found!r} cannot be read",
        why="no word of the language has this character here" if found not in fixes else "a quote stands alone here",
        fix=fixes.get(found, "remove it, or put it in quotes if it belongs to a text"),
    )


def _fix(token: str, expected: set[str]) -> str:
    keywords = [one.strip("_") for one in expected if one.strip("_").isalpha() and one not in _WORDS]
    close = nearest(token, keywords)
    if close is not None and not token.isdigit():
        return f"write {close}"
    if len(expected) == 1 and keywords:
        return f"write {keywords[0]} before it"
    if "NAME" in expected and token.upper() in KEYWORDS:
        return "complete what stands before it; a name that is a keyword stands in backticks"
    return "correct or remove it"


def _listed(expected: set[str]) -> str:
    """The terminals in words: names and marks first, then keywords; operators and expressions are one entry each."""
    shown = []
    if expected >= _BEGINNING:
        shown.append("an expression")
        expected = expected - _BEGINNING - {"NOT"}
    if "COMPARISON" in expected:
        shown.append("an operator")
        expected = expected - _OPERATORS
    words = {_WORDS.get(one, one.strip("_")) for one in expected} - {""}
    return ", ".join([*shown, *sorted(words, key=lambda word: (word.isupper(), word))])
