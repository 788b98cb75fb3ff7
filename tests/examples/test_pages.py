"""The pages example: its requests, its oracle, and its operators."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.examples.plain import run_operators
from tests.examples.running import app_file
from tests.oracles import pages as oracle
from tests.oracles.rows import Epochs, Row, generated
from understudy.runtime.application import load
from understudy.sources import Generator

START = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = {"rate": "60", "seed": "4", "top": "20"}


def request(minute: float, page: int, server: int = 0) -> Row:
    return {"server": server, "page": page, "at": START + timedelta(minutes=minute)}


def made(epochs: int) -> Epochs:
    app = load(app_file("pages"), SETTINGS)
    source = app.sources[0].source
    assert isinstance(source, Generator)
    assert isinstance(source.rate, float)
    return generated(source.make, source.rate, source.seed, epochs, app.epoch_s, app.sources[0].slices)


def one_slice(_: int) -> int:
    return 0


def test_the_oracle_ranks_a_window_by_the_requests_to_all_servers() -> None:
    epochs = [
        [request(0.1, 7), request(0.2, 7, 1), request(0.3, 8), request(0.4, 9)],
        [request(1.5, 9), request(1.6, 5, 1)],
        *([request(minute + 0.5, 1)] for minute in range(2, 6)),
    ]
    top = oracle.expected(epochs, one_slice, one_slice, 1, top=2)["top"]
    # Each step waits for the next window: the one that ends after a minute is delivered in the fifth epoch.
    assert top[:4] == [[], [], [], []]
    assert [[(row["end"][14:16], row["page"]) for row in rows] for rows in top[4:]] == [
        [("01", 7), ("01", 8)],
        [("02", 7), ("02", 9)],
    ]


def test_without_half_of_the_servers_most_of_the_top_is_still_there() -> None:
    """Accuracy of a top list is the share of its pages: lines have no counts, which would all be wrong."""
    whole = oracle.expected(made(16), one_slice, one_slice, 1, top=20)["top"]
    half = [[row for row in rows if row["server"] % 2] for rows in made(16)]
    rest = oracle.expected(half, one_slice, one_slice, 1, top=20)["top"]
    pages = Counter((row["end"], row["page"]) for rows in whole for row in rows)
    had = pages & Counter((row["end"], row["page"]) for rows in rest for row in rows)
    assert pages.total() >= 100
    assert 0.5 < had.total() / pages.total() < 1


def test_few_pages_get_most_requests() -> None:
    asked = Counter(row["page"] for rows in made(20) for row in rows)
    assert sum(n for _, n in asked.most_common(50)) > 0.5 * asked.total()
    assert len({row["server"] for rows in made(20) for row in rows}) == 30


@pytest.mark.spark
def test_operators_do_as_the_oracle(spark: SparkSession, tmp_path: Path) -> None:
    delivered = run_operators(spark, "pages", SETTINGS, 12, tmp_path)["hottest"]
    expected = oracle.expected(made(12), one_slice, one_slice, 1, top=20)["top"]
    assert sum(map(len, expected)) >= 100
    assert delivered == [sorted(rows, key=str) for rows in expected]
