"""The incidents example: its traffic, its oracle, its plan and its operators."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.examples.plain import read_again, run_operators
from tests.examples.running import app_file
from tests.oracles import incidents as oracle
from tests.oracles.rows import Epochs, Row
from understudy.planning.replication.from_topology import problem_from
from understudy.planning.replication.metrics import Metrics
from understudy.runtime.application import load

START = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = {"rate": "200", "seed": "6"}


def made(epochs: int) -> list[Epochs]:
    """The positions and the reports."""
    return read_again(load(app_file("incidents"), SETTINGS), epochs)


def row(second: float, segment: int, **values: int) -> Row:
    return {"segment": segment, "at": START + timedelta(seconds=second)} | values


def test_the_oracle_pairs_an_incident_with_the_slow_times_after_it() -> None:
    incidents = [[row(10, 1, reports=3), row(10, 2, reports=4)], [], []]
    speeds = [[row(10, 1, kmh=20), row(10, 2, kmh=60)], [row(70, 1, kmh=10)], [row(80, 1, kmh=5)]]
    assert oracle.jams(incidents, speeds, 25) == [
        [row(10, 1, reports=3, kmh=20)],
        [row(10, 1, reports=3, kmh=10)],
        [],
    ]


def test_some_incidents_jam_and_a_missing_side_leaves_nothing() -> None:
    positions, reports = made(30)
    whole = [one for rows in oracle.expected(positions, reports, lambda _: 0, 1)["jams"] for one in rows]
    told = sum(len(rows) for rows in oracle.by_window(reports, oracle.number))
    assert 20 < len(whole) < told
    nothing: Epochs = [[] for _ in range(30)]
    assert oracle.expected(positions, nothing, lambda _: 0, 1)["jams"] == nothing
    assert oracle.expected(nothing, reports, lambda _: 0, 1)["jams"] == nothing


def test_fidelity_knows_that_a_join_needs_both_sides() -> None:
    problem = problem_from(load(app_file("incidents")))
    metrics = Metrics(problem)
    alive = metrics.alive(problem.numbers(task for task in problem.tasks if task != "reports[0]"))
    assert metrics.output_fidelity(alive) == 0
    assert metrics.internal_completeness(alive) > 0.5


@pytest.mark.spark
def test_operators_do_as_the_oracle(spark: SparkSession, tmp_path: Path) -> None:
    delivered = run_operators(spark, "incidents", SETTINGS, 24, tmp_path)["board"]
    positions, reports = made(24)
    expected = oracle.expected(positions, reports, lambda _: 0, 1)["jams"]
    assert sum(map(len, expected)) > 10
    assert delivered == [sorted(rows, key=str) for rows in expected]
