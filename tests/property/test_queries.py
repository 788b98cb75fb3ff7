"""Any query that is printed is read back as it was; any sequence is found as its definition says."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import sequences
from understudy.errors import InvalidInput
from understudy.queries import syntax as s
from understudy.queries.functions import FUNCTIONS, TYPES
from understudy.queries.matching import Event, Match, Matcher
from understudy.queries.parser import parse
from understudy.queries.printer import KEYWORDS, show

plain_names = st.text(string.ascii_letters + "_", min_size=1, max_size=5)
names = plain_names | st.sampled_from(sorted(KEYWORDS)) | st.sampled_from(["a b", "x`y", "1st", "größe", "select"])
columns = st.builds(s.Column, names, st.none() | names)
numbers = st.integers(0, 2**63 - 1) | st.floats(0, allow_infinity=False, allow_nan=False)
literals = st.builds(s.Literal, numbers | st.text(max_size=5) | st.booleans() | st.none())
comparisons = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "LIKE", "AND", "OR", "+", "-", "*", "/", "%"])


def composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    called = st.builds(s.Call, st.sampled_from(sorted(set(FUNCTIONS) - {"count"})), some)
    branches = st.lists(st.builds(s.Branch, inner, inner), min_size=1, max_size=2).map(tuple)
    types = st.sampled_from([*TYPES, "decimal(5)", "decimal(10,2)"])
    return st.one_of(
        st.builds(s.Binary, comparisons, inner, inner),
        st.builds(s.Unary, st.sampled_from(["-", "NOT"]), inner),
        st.builds(s.Between, inner, inner, inner, st.booleans()),
        st.builds(s.Among, inner, some, st.booleans()),
        st.builds(s.Missing, inner, st.booleans()),
        st.builds(s.Case, branches, st.none() | inner),
        st.builds(s.Cast, inner, types),
        st.just(s.Call("count", ())),
        called,
    )


expressions = st.recursive(columns | literals, composed, max_leaves=8)
durations = st.builds(s.Duration, st.integers(0, 10**12))
streams = st.builds(s.Stream, names, st.none() | names)
timings = st.builds(
    s.Timing, durations, st.none() | durations, st.none() | st.builds(s.Column, names), st.none() | durations
)
sources = st.one_of(
    streams,
    st.builds(s.Join, streams, streams, expressions, st.sampled_from(["inner", "left"])),
    st.builds(
        s.Pattern, st.lists(st.builds(s.Step, names, names, st.none() | expressions), min_size=2, max_size=4).map(tuple)
    ),
)
queries = st.builds(
    s.Query,
    items=st.lists(st.builds(s.Item, expressions, st.none() | names), max_size=3).map(tuple),
    source=sources,
    timing=timings | st.just(s.Timing()),
    where=st.none() | expressions,
    groups=st.lists(expressions, max_size=2).map(tuple),
    having=st.none() | expressions,
)


@given(queries)
@settings(max_examples=300)
def test_a_printed_query_is_read_back_as_it_was(query: s.Query) -> None:
    text = show(query)
    assert parse(text) == query
    assert show(parse(text.replace(" ", "\n\t "))).split() == text.split() or "'" in text or "`" in text


@given(queries)
def test_every_node_knows_its_place(query: s.Query) -> None:
    text = show(query)
    for node in s.walk(parse(text)):
        if isinstance(node, s.Column | s.Literal | s.Call | s.Duration | s.Stream | s.Step):
            assert show(node).replace(" ", "") in text[node.span.start : node.span.end].replace(" ", "")


@given(
    st.text(string.printable, max_size=60)
    | st.lists(st.sampled_from(sorted(KEYWORDS) + list("(),.=*-'`a1"))).map(" ".join)
)
def test_a_text_is_a_query_or_an_error_with_a_place(text: str) -> None:
    try:
        found: s.Query | str = parse(text)
    except InvalidInput as error:
        found = error.what
    assert isinstance(found, s.Query) or (found.startswith("line ") and "^" in found)


events = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 1), st.none() | st.integers(0, 5)), max_size=14)
RISING = s.Binary(">", s.Column("v0", "b"), s.Column("v0", "a"))
WIDE = s.Binary(">", s.Binary("-", s.Column("v0", "c"), s.Column("v0", "a")), s.Literal(1))
MATCHER = Matcher(("a", "b", "c"), (None, RISING, WIDE), (("v0",),) * 3, within_us=12)


def _greater(left: int | None, right: int | None) -> bool:
    return left is not None and right is not None and left > right


STEPS: list[sequences.Condition] = [
    lambda a: a["stream"] == 0,
    lambda a, b: _greater(b["v"], a["v"]),
    lambda a, _, c: c["v"] is not None and a["v"] is not None and c["stream"] == 1 and c["v"] - a["v"] > 1,
]


def _steps(stream: int) -> int:
    """The first step takes stream 0, the second both, the last stream 1."""
    return 0b011 if stream == 0 else 0b110


@given(events, st.lists(st.integers(0, 30), max_size=3), st.randoms(use_true_random=False))
@settings(max_examples=300)
def test_sequences_are_what_their_definition_says_however_events_are_cut(
    rows: list[tuple[int, int, int | None]], cuts: list[int], shuffle: Any
) -> None:
    """Events are handed over in pieces, as watermarks pass them, and inside a piece in any order."""
    ordered = sorted((Event(at, _steps(stream), (value,)) for at, stream, value in rows), key=lambda event: event.order)
    begun: list[Match] = []
    found: list[Match] = []
    for low, high in zip([-1, *sorted(cuts)], [*sorted(cuts), 31], strict=True):
        piece = [event for event in ordered if low < event.at <= high]
        shuffle.shuffle(piece)
        begun, complete = MATCHER.advance(begun, piece)
        begun = MATCHER.alive(begun, high)
        found += complete
    told = [(event.at, 0, {"stream": int(event.steps == 0b110), "v": event.values[0]}) for event in ordered]
    expected = sequences.matches(told, [(0, condition) for condition in STEPS], 12)
    values = sorted(repr([event.values[0] for event in match]) for match in found)
    assert values == sorted(repr([row["v"] for row in match]) for match in expected)


@pytest.mark.parametrize("late", [13, 14])
def test_a_match_is_given_up_when_its_time_is_over(late: int) -> None:
    begun, _ = MATCHER.advance([], [Event(1, 1, (1,))])
    assert bool(MATCHER.alive(begun, late - 1)) == (late == 13)
