"""Sequences survive failures: events that wait, matches that are not complete, and timers go with the state."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from tests.apps import rises as app
from tests.faults.scripts import Driver, Script, gone, healthy, progressed
from tests.oracles import sequences
from tests.oracles.delivered import differences, rows
from tests.oracles.rows import Output, generated
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(480)]


def expected(epochs: int) -> Output:
    trades = generated(app.make, app.RATE, 7, epochs, app.EPOCH_S)
    large = [[row for row in found if row["price"] > 20] for found in trades]
    steps: list[tuple[int, sequences.Condition]] = [
        (0, lambda a: a["price"] < 60),
        (0, lambda a, b: b["symbol"] == a["symbol"] and b["price"] > a["price"] + 20),
    ]
    matched = sequences.emitted([large], steps, timedelta(seconds=2), timedelta(milliseconds=500))
    return [Counter((a["symbol"], a["at"], b["at"], b["price"] - a["price"]) for a, b in found) for found in matched]


def test_a_sequence_goes_on_where_its_killed_primary_stopped(tmp_path: Path) -> None:
    def script(driver: Driver) -> Script:
        yield healthy(2)
        yield progressed(driver.state, 4)
        victim = next(one.primary for one in driver.state.slices if one.slice == "rises[0]")
        driver.launcher.inject(f"kill:{victim}")
        yield gone(victim)
        yield progressed(driver.state, 4)

    driver = Driver(script)
    report = run(Path(app.__file__), tmp_path, drive=driver, nodes=2, scheme="passive_standby_hot", fast=False)
    assert report.verdict == "exact", report.failure
    assert driver.done
    assert "rises[0]" in {recovery.slice for fault in report.faults for recovery in fault.recoveries}
    wanted = {"rises": expected(report.epochs)}
    assert rows(wanted)["rises"] > 10
    assert differences(tmp_path, wanted) == []
