"""The recovery example: its rows, its oracle, its plan, its operators, and a run that loses a domain."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.examples.plain import read_again, run_operators
from tests.examples.running import app_file
from tests.faults.scripts import Driver, Script, both, healthy, operators, progressed
from tests.oracles import recovery as oracle
from tests.oracles.lines import differences
from tests.oracles.rows import Epochs, Row
from understudy.model.recovery import ACTIVE
from understudy.model.view import RunState
from understudy.planning.replication.from_topology import problem_from
from understudy.planning.replication.plan import PlanRequest
from understudy.planning.replication.registry import planner
from understudy.runtime.application import load
from understudy.testing.cluster import run

START = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW = timedelta(seconds=3)
SETTINGS = {"rate": "24", "seed": "5", "window": "3"}


def row(second: float, key: int, value: int) -> Row:
    return {"key": key, "at": START + timedelta(seconds=second), "value": value}


def read(epochs: int, settings: Mapping[str, str]) -> list[Epochs]:
    """The rows of every source, made again without the project's source."""
    return read_again(load(app_file("recovery"), settings), epochs)


def test_the_oracle_adds_pairs_of_keys_over_the_window() -> None:
    epochs = [[row(0.5, 0, 1), row(0.2, 1, 10), row(0.9, 2, 100)], [row(1.5, 1, 1000)], [row(2.5, 3, 5)], [], []]
    # In the third epoch the newest row before is of 1.5 s: the window that ends at 1 s is over, in the fourth the next.
    assert oracle.smoothed(epochs, timedelta(seconds=2)) == [
        [],
        [],
        [row(0, 0, 11), row(0, 1, 100)],
        [row(1, 0, 1011), row(1, 1, 100)],
        [],
    ]


def test_a_missing_source_leaves_the_rows_of_the_others_alone() -> None:
    """What tentative output is worth: half of the sources give exactly half of the rows."""
    sources = read(16, SETTINGS)
    whole = oracle.expected(sources, WINDOW)["smoothed"]
    nothing: Epochs = [[] for _ in range(16)]
    half = oracle.expected([*sources[:2], nothing, nothing], WINDOW)["smoothed"]
    assert sum(map(len, whole)) > 100
    assert [[one for one in rows if one["key"] < 6] for rows in whole] == half
    assert sum(map(len, half)) * 2 == sum(map(len, whole))


def test_every_operator_emits_half_of_what_it_reads() -> None:
    sources = read(40, SETTINGS)
    rows = [sum(len(epochs[20]) for epochs in sources)]
    level = sources
    for _ in range(3):
        level = [oracle.smoothed(epochs, timedelta(seconds=10)) for epochs in level]
        rows.append(sum(len(epochs[30]) for epochs in level))
    assert rows == [96, 48, 24, 12]


def test_half_of_the_slices_keep_half_of_the_output() -> None:
    app = load(app_file("recovery"))
    problem = problem_from(app)
    kept = {budget: planner("exact")(PlanRequest(problem, budget)).output_fidelity for budget in (0, 6, 11)}
    assert app.replicas == 6
    assert kept == pytest.approx({0: 0.0, 6: 0.5, 11: 1.0})


@pytest.mark.spark
def test_operators_do_as_the_oracle(spark: SparkSession, tmp_path: Path) -> None:
    delivered = run_operators(spark, "recovery", SETTINGS, 12, tmp_path)["root"]
    expected = oracle.expected(read(12, SETTINGS), WINDOW)["smoothed"]
    assert sum(map(len, expected)) > 60
    assert delivered == [sorted(rows, key=str) for rows in expected]


@pytest.mark.spark
@pytest.mark.timeout(480)
def test_a_lost_domain_changes_nothing(tmp_path: Path) -> None:
    """Tentative output while slices are missing; the stable output is what the oracle says."""

    def planned(state: RunState) -> bool:
        return sum(one.scheme in ACTIVE for one in operators(state)) == 4

    def script(driver: Driver) -> Script:
        yield both(healthy(2), planned)
        yield progressed(driver.state, 3)
        yield both(healthy(2), planned)
        driver.launcher.inject("kill:domain-1")
        yield lambda state: all(node.domain != "domain-1" for node in state.nodes)
        yield progressed(driver.state, 4)

    driver = Driver(script)
    settings = SETTINGS | {"epoch": "2", "tentative_after": "500 ms", "scheme": "passive_replication"}
    report = run(
        app_file("recovery"), tmp_path, drive=driver, settings=settings, nodes=2, domains=2, fast=False, backlog=100
    )
    assert report.verdict == "exact", report.failure
    assert driver.done
    assert report.faults[0].recoveries
    assert all(one.had is not None for one in report.tentative.epochs), "all that was tentative is corrected"
    assert differences(tmp_path, oracle.expected(read(report.epochs, settings), WINDOW)) == []
