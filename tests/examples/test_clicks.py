"""The clicks example: its views, its oracle, and a run with a kill against that oracle."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.examples.running import made, read, run_with_a_kill, slices_of
from tests.oracles import clicks as oracle
from tests.oracles.lines import differences
from tests.oracles.rows import Row

START = datetime(2026, 1, 1, tzinfo=UTC)


def view(second: float, page: str, user: int = 1) -> Row:
    return {"user": user, "page": page, "at": START + timedelta(seconds=second)}


@pytest.mark.parametrize(
    ("path", "stages"),
    [
        ("home search home", 0),
        ("product home product", 1),
        ("product search cart checkout", 3),
        ("cart product cart paid checkout", 3),
        ("product cart checkout paid product", 4),
    ],
)
def test_the_oracle_follows_a_path_through_the_funnel(path: str, stages: int) -> None:
    assert oracle.reached(path.split()) == stages


def test_the_oracle_ends_a_visit_when_its_user_was_away() -> None:
    epochs = [
        [view(0, "product"), view(100, "cart"), view(90, "home", 2)],
        [view(280, "paid"), view(461, "home")],  # 180 s after the view before: the same visit; 181 s: another
        [view(600, "home", 2)],
        [],
    ]
    out = oracle.expected(epochs, lambda _: 0, 1)
    # In the third epoch the watermark is at 401 s, after the end of user 2's first visit only.
    assert [[(row["user"], row["views"], row["reached"]) for row in rows] for rows in out["sessions"]] == [
        [],
        [],
        [(2, 1, 0)],
        [(1, 3, 2)],
    ]
    assert out["sessions"][3][0]["start"] == "2026-01-01T00:00:00Z"
    assert out["sessions"][3][0]["end"] == "2026-01-01T00:07:40Z"
    assert [[(row["stage"], row["visits"]) for row in rows] for rows in out["funnel"][2:]] == [
        [("visit", 1)],
        [("visit", 2), ("product", 1), ("cart", 1)],
    ]


def test_slices_end_visits_by_their_own_clocks() -> None:
    epochs = [[view(0, "home", 1), view(0, "home", 2)], [view(900, "home", 3)], [], []]
    out = oracle.expected(epochs, lambda user: user % 2, 2)
    assert [[row["user"] for row in rows] for rows in out["sessions"]] == [[], [], [1], []]


def test_generated_views_make_visits_that_few_finish() -> None:
    epochs = made("clicks", 40, {"rate": "200"})
    ended = [row for rows in oracle.expected(epochs, lambda _: 0, 1)["sessions"] for row in rows]
    assert 1.5 < np.mean([row["views"] for row in ended]) < 6
    came = Counter(row["reached"] for row in ended)
    assert came[0] > came[4] > 0
    assert came[1] > came[2] > came[3]
    newest = [max(row["at"] for row in rows) for rows in epochs]
    late = sum(row["at"] < before for rows, before in zip(epochs[1:], newest, strict=False) for row in rows)
    assert 0 < late < 0.06 * 200 * 40


def test_a_file_of_views_is_read(tmp_path: Path) -> None:
    path = tmp_path / "views.csv"
    path.write_text("user,page,at\n7,home,2026-01-01 00:00:10\n8,cart,2026-01-01 00:01:30\n")
    assert read("clicks", 2, {"data": str(path)}) == [[view(10, "home", 7)], [view(90, "cart", 8)]]


@pytest.mark.spark
def test_a_killed_node_changes_nothing(tmp_path: Path) -> None:
    settings = {"rate": "120", "seed": "3"}
    report = run_with_a_kill("clicks", tmp_path, settings)
    epochs = made("clicks", report.epochs, settings)
    users = pa.array(sorted({row["user"] for rows in epochs for row in rows}), pa.int64())
    slice_of = slices_of("user", users, 2)
    expected = oracle.expected(epochs, lambda user: slice_of[user], 2)
    assert min(sum(map(len, lines)) for lines in expected.values()) > 20
    assert differences(tmp_path, expected) == []
