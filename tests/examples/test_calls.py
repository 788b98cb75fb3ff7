"""The calls example: its records, its oracle, and a run with a kill against that oracle."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.examples.running import made, module, read, run_with_a_kill
from tests.oracles import calls as oracle
from tests.oracles.lines import differences
from tests.oracles.rows import Row

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


def call(minute: float, caller: int, callee: int, seconds: int = 60) -> Row:
    return {"caller": caller, "callee": callee, "at": START + timedelta(minutes=minute), "seconds": seconds}


def test_a_call_counts_at_both_ends_in_three_windows() -> None:
    out = oracle.expected([[call(25, 1, 2)]])["features"][0]
    assert {(row["number"], row["start"][11:16], row["calls"], row["received"]) for row in out} == {
        (number, start, *counts)
        for number, counts in ((1, (1, 0)), (2, (0, 1)))
        for start in ("12:00", "12:10", "12:20")
    }


def test_features_add_up_over_epochs() -> None:
    out = oracle.expected([[call(0, 1, 2, 10), call(1, 1, 2, 0)], [call(2, 1, 3, 5), call(29, 4, 1)]])["features"]
    row = next(row for row in out[1] if (row["number"], row["start"][11:16]) == (1, "12:00"))
    assert [row[name] for name in ("calls", "callees", "answered", "talked", "received")] == [3, 2, 2, 15, 1]


def test_every_sign_is_worth_its_points() -> None:
    machine = {"calls": 10, "callees": 9, "received": 0, "answered": 4, "talked": 119}
    assert oracle.points(machine) == 8
    for change, worth in (
        ({"calls": 9, "answered": 4}, 2),
        ({"callees": 8}, 2),
        ({"received": 1}, 2),
        ({"answered": 5, "talked": 149}, 1),
        ({"talked": 120}, 1),
    ):
        assert oracle.points(machine | change) == 8 - worth, change
    assert oracle.points({"calls": 0, "callees": 0, "received": 3, "answered": 0, "talked": 0}) == 2


def test_a_case_keeps_its_best_window() -> None:
    burst = [call(n / 2, 7, 100 + n, 0) for n in range(12)]
    out = oracle.expected([burst[:9], burst[9:11], burst[11:], [call(40, 7, 8, 0)]])["cases"]
    assert [[(row["points"], row["calls"]) for row in rows] for rows in out] == [[], [(7, 11)], [(7, 12)], []]
    assert out[1][0]["first"] == "2026-01-01T11:40:00Z"


def test_generated_machines_are_found_and_people_are_not() -> None:
    epochs = made("calls", 15, {"rate": "120", "people": "800", "seed": "8"})
    cases = {row["number"] for rows in oracle.expected(epochs)["cases"] for row in rows}
    first = module("calls", "calls_records").FIRST_MACHINE
    assert {number for number in cases if number >= first} == {first + n for n in range(6)}
    assert len(cases) == 6
    for rows in epochs:
        assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)


def test_a_file_of_records_is_read(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    path.write_text("caller,callee,at,seconds\n1,2,2026-01-01 12:00:00,60\n2,1,2026-01-01 12:01:30,0\n")
    assert read("calls", 2, {"data": str(path)}) == [[call(0, 1, 2)], [call(1.5, 2, 1, 0)]]


@pytest.mark.spark
def test_a_killed_node_changes_nothing(tmp_path: Path) -> None:
    settings = {"rate": "120", "people": "600", "speed": "150", "seed": "2"}
    report = run_with_a_kill("calls", tmp_path, settings)
    assert report.epochs * 2.5 > 20, "windows end"
    expected = oracle.expected(made("calls", report.epochs, settings))
    assert min(sum(map(len, epochs)) for epochs in expected.values()) > 10
    assert differences(tmp_path, expected) == []
