"""All queries by name: what each is made of, and what it keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from understudy.errors import InvalidInput
from understudy.nexmark import closing, joined, reports, stateless, windowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from understudy.model.entries import OutputMode

LEFT_OUT = {"q12": "it counts by processing time, which is another one in every run"}
"""Queries that have no single right answer, and why."""


@dataclass(frozen=True)
class Stage:
    """One operator; it reads the stage before, the first one the events."""

    name: str
    build: Callable[[DataFrame], DataFrame]
    output_mode: OutputMode = "append"


@dataclass(frozen=True)
class Query:
    """Stages in order; the last one's output is the query's. `state` says in words what is kept."""

    name: str
    state: str
    stages: tuple[Stage, ...]

    @property
    def title(self) -> str:
        """The first sentence of its docstring."""
        return (self.stages[-1].build.__doc__ or "").split("\n")[0].rstrip(".")


def _one(build: Callable[[DataFrame], DataFrame], state: str, output_mode: OutputMode = "append") -> Query:
    name = build.__name__
    return Query(name, state, (Stage(name, build, output_mode),))


def _after_sold(build: Callable[[DataFrame], DataFrame], state: str, output_mode: OutputMode) -> Query:
    """A query over auctions that are over: closing them is an operator of its own."""
    name = build.__name__
    return Query(name, state, (Stage(f"{name}-sold", closing.sold), Stage(name, build, output_mode)))


_NONE = "none"
_OPEN = "open auctions with their best bid, timers"
_PAST = "all rows of both sides"
_QUERIES = (
    _one(stateless.q0, _NONE),
    _one(stateless.q1, _NONE),
    _one(stateless.q2, _NONE),
    _one(joined.q3, _PAST),
    _after_sold(closing.q4, f"{_OPEN}; a sum per category", "update"),
    _one(windowed.q5, "counts of open windows; the windows themselves"),
    _after_sold(closing.q6, f"{_OPEN}; ten prices per seller", "append"),
    _one(windowed.q7, "bids of open windows, by price"),
    _one(windowed.q8, "people and sellers of open windows"),
    _one(closing.q9, _OPEN),
    _one(stateless.q10, _NONE),
    _one(windowed.q11, "open sessions"),
    _one(stateless.q13, "none; a static table"),
    _one(stateless.q14, _NONE),
    _one(reports.q15, "sets of bidders and auctions per day", "update"),
    _one(reports.q16, "sets of bidders and auctions per channel and day", "update"),
    _one(reports.q17, "a few numbers per auction and day", "update"),
    _one(reports.q18, "a bid per bidder and auction", "update"),
    _one(reports.q19, "ten bids per auction", "update"),
    _one(joined.q20, _PAST),
    _one(stateless.q21, _NONE),
    _one(stateless.q22, _NONE),
    _one(joined.q23, "all rows of all three sides"),
)
QUERIES = {query.name: query for query in _QUERIES}


def chosen(names: str) -> list[Query]:
    """The queries of a list like "q3,q5"; all of them for "all".

    Examples
    --------
    >>> [query.name for query in chosen("q5,q3")]
    ['q5', 'q3']
    """
    wanted = list(QUERIES) if names.strip() == "all" else [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in QUERIES:
            raise InvalidInput(
                f"there is no query '{name}'",
                why=LEFT_OUT.get(name, f"the queries are {', '.join(QUERIES)}"),
                fix="name queries like q3,q5, or all",
            )
    if len(set(wanted)) < len(wanted):
        raise InvalidInput(f"'{names}' names a query twice", why="each is run once", fix="name each query once")
    return [QUERIES[name] for name in wanted]
