"""Mistakes in queries, each with the error that it gives: place, reason and fix.

`query_errors.txt` holds them, a query and its error each. After a change of words:

    python -m tests.unit.test_query_errors
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.queries import market

from understudy import extras
from understudy.errors import Unavailable
from understudy.queries.places import QueryMistake, Span, Text
from understudy.queries.query import planned

FILE = Path(__file__).with_name("query_errors.txt")
BETWEEN, THEN = "\n----\n", "\n=>\n"
CASES = [block.partition(THEN)[::2] for block in FILE.read_text().rstrip("\n").split(BETWEEN)]


def error_of(text: str) -> str:
    with pytest.raises(QueryMistake) as caught:
        planned(market(), text, "")
    return str(caught.value)


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text or "nothing" for text, _ in CASES])
def test_an_error_points_at_the_place_and_says_what_to_do(text: str, expected: str) -> None:
    assert error_of(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"SELECT {'price + ' * 20_000} 1 AS n FROM trades", "the query has 160026 characters"),
        (f"SELECT {'price + ' * 2_000} 1 AS n FROM trades", "nested more than 100 deep"),
        (f"SELECT {'(' * 200}price{')' * 200} AS n FROM trades", None),
        (f"SELECT {'-(' * 200}price{')' * 200} AS n FROM trades", "nested more than 100 deep"),
        (f"SELECT {'price + ' * 60} 1 AS n, prise FROM trades", "'prise' is not a column"),
    ],
)
def test_long_and_deep_texts_are_answered_in_a_few_lines(text: str, said: str | None) -> None:
    if said is None:
        planned(market(), text, "")
        return
    error = error_of(text)
    assert said in error
    assert max(map(len, error.splitlines())) < 200


def test_of_a_long_line_the_part_around_the_place_is_shown() -> None:
    line = "a" * 300 + " wrong " + "b" * 300
    shown, carets = Text(line).marked(Span(301, 306)).splitlines()
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "wrong"
    assert (shown.strip()[0], shown[-1]) == ("…", "…")


def test_without_lark_an_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    with pytest.raises(Unavailable, match=r"us\.query cannot be used here") as caught:
        planned(market(), "SELECT * FROM trades", "")
    assert caught.value.fix == "pip install 'understudy[queries]'"


if __name__ == "__main__":
    FILE.write_text(BETWEEN.join(text + THEN + error_of(text) for text, _ in CASES) + "\n")
