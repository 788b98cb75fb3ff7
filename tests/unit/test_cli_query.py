"""`understudy query explain`: for people and as JSON, from text, files and applications."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy.cli.main import app

RISES = Path(__file__).parents[1] / "apps" / "rises.py"
TEXT = "SELECT symbol, avg(price) AS mean FROM trades WITHIN 10 s GROUP BY symbol HAVING mean > 10"


def explained(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["query", "explain", *arguments])
    assert result.exit_code == code, result.output
    return result.output


EXPECTED = """\
SELECT symbol, avg(price) AS mean FROM trades WITHIN 10 s GROUP BY symbol HAVING mean > 10

syntax tree
  query
    select: symbol
    select: avg(price) AS mean
    stream: trades
    timing
      within: 10 s
    group by: symbol
    having: mean > 10

operator
  the query reads trades and emits symbol, mean
  1. withWatermark(at, 0 s)
  2. groupBy(window(at, 10 s, 10 s), symbol AS _g0)
  3. agg(avg(price) AS _a0)
  4. where(_a0 > 10)
  5. select(_g0 AS symbol, _a0 AS mean)

derived
  kind         aggregation in tumbling windows
               because windows follow each other: EVERY is not shorter than WITHIN
  event time   at of 'trades', rows up to 0 s out of order
               because it is the only timestamp of 'trades'; LATE is not given
  key          symbol
               because GROUP BY names it: the rows of a group meet in one slice
  slices       2
               because it was asked for
  output mode  append
               because the output is final: no row is corrected later
"""


def test_an_explanation_says_what_was_derived_and_why() -> None:
    assert explained(TEXT, "--app", str(RISES), "--slices", "2") == EXPECTED


def test_json_says_the_same(tmp_path: Path) -> None:
    file = tmp_path / "means.usq"
    file.write_text(f"-- the mean price\n{TEXT};\n")
    found = json.loads(explained(str(file), "--json", "--app", str(RISES)))
    assert found["operator"] == {
        "inputs": ["trades"],
        "key": ["symbol"],
        "slices": 1,
        "output_mode": "append",
        "stateful": True,
        "emits": ["symbol", "mean"],
        "event_time": None,
    }
    assert found["text"] == TEXT
    assert found["tree"]["items"][1]["value"] == {
        "node": "call",
        "name": "avg",
        "arguments": [{"node": "column", "name": "price", "stream": None, "at": [37, 42]}],
        "at": [33, 43],
    }
    assert {reason["about"] for reason in found["reasons"]} == {"kind", "event time", "key", "slices", "output mode"}


def test_all_queries_of_an_application_are_explained() -> None:
    found = json.loads(explained(str(RISES), "--json"))
    assert [(one["name"], one["operator"]["event_time"]) for one in found] == [("large", "at"), ("rises", "at")]
    assert found[1]["steps"] == [
        "large: withWatermark(at, 500 ms)",
        "large: an event for a if price < 60, b if any row comes; carries symbol AS v0, price AS v1, "
        "price + 20 AS v2, at AS v3",
        "groupBy(symbol)",
        "transformWithState(eventTime): a -> b(b.v0 = a.v0 AND b.v1 > a.v2)",
        "select(a.v0 AS symbol, a.v3 AS start, b.v3 AS at, b.v1 - a.v1 AS rise)",
    ]


def test_without_an_application_streams_are_taken_as_they_are_named() -> None:
    said = explained("SELECT t.a, q.b FROM t LEFT JOIN q ON t.k = q.k WITHIN 2 s")
    assert "t AS t: withWatermark(<event time of t>, 0 s)" in said
    assert "join(left, t.k = q.k AND t.<event time of t> and q.<event time of q> differ by at most 2 s)" in said
    assert "no application is given" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((TEXT.replace("price", "prise"), "--app", str(RISES)), "fix: write price"),
        (("SELECT symbol FORM trades",), "fix: write FROM"),
        (("nowhere.usq",), "nowhere.usq cannot be read"),
        ((str(RISES.with_name("sums.py")),), "has no query in text"),
    ],
)
def test_mistakes_end_with_an_error_in_three_parts(arguments: tuple[str, ...], said: str) -> None:
    found = explained(*arguments, code=2)
    assert said in found
    assert "why:" in found
