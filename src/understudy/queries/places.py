"""Where something stands in the text of a query, and errors that point there."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from understudy.errors import InvalidInput


@dataclass(frozen=True)
class Span:
    """Characters of the text, from `start` up to and without `end`."""

    start: int
    end: int


NOWHERE = Span(0, 0)
LONGEST_LINE = 160
"""Characters of a line of the text that an error shows."""


@dataclass(frozen=True)
class Text:
    """The text of a query, and how errors call it."""

    content: str
    name: str = ""

    def place(self, span: Span) -> tuple[int, int]:
        """Line and column of the first character, both from 1."""
        before = self.content[: span.start]
        return before.count("\n") + 1, span.start - (before.rfind("\n") + 1) + 1

    def marked(self, span: Span) -> str:
        """The line of the text with carets below what is meant; of a long line, the part around it."""
        line, column = self.place(span)
        shown = self.content.split("\n")[line - 1].replace("\t", " ")
        width = max(1, min(span.end - span.start, len(shown) - column + 1))
        if len(shown) > LONGEST_LINE:
            first = max(0, column - 1 - LONGEST_LINE // 3)
            last = first + LONGEST_LINE
            shown = ("…" if first else "") + shown[first:last] + ("…" if last < len(shown) else "")
            column = column - first + (1 if first else 0)
            width = min(width, max(1, len(shown) - column + 1))
        return f"    {shown}\n    {' ' * (column - 1)}{'^' * width}"

    def mistake(self, span: Span, what: str, *, why: str, fix: str) -> QueryMistake:
        """An error in three parts whose first part shows the place."""
        line, column = self.place(span)
        named = f"query '{self.name}', " if self.name else ""
        return QueryMistake(f"{named}line {line}, column {column}: {what}\n{self.marked(span)}", why=why, fix=fix)


class QueryMistake(InvalidInput):
    """A query that cannot be read or means nothing; its first part shows the place in the text."""


def nearest(word: str, words: list[str] | tuple[str, ...]) -> str | None:
    """What was probably meant."""
    by_lower = {one.lower(): one for one in words}
    found = get_close_matches(word.lower(), list(by_lower), n=1)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, words: list[str] | tuple[str, ...], otherwise: str) -> str:
    """The fix for a word that does not exist."""
    close = nearest(word, words)
    return f"write {close}" if close else otherwise
