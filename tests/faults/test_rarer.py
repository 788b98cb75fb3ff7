"""Files and a live source, sparse and out of step, and the kinds of state that `test_kinds.py` has not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.faults.scripts import Driver, Script, busiest, gone, progressed, working
from tests.oracles import rarer
from tests.oracles.delivered import delivered, differences, rows
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(480)]

APP = Path(__file__).parents[1] / "apps" / "rarer.py"
KINDS = {"seen", "unique", "patient", "sessions", "matched", "sliding"}


def lose_two_nodes(driver: Driver) -> Script:
    """With two nodes, whoever takes over hosts everything: so the second kill hits every kind."""
    for _ in range(2):
        yield working(2)
        yield progressed(driver.state, 3)
        yield working(2)
        victim = busiest(driver.state)
        driver.launcher.inject(f"kill:{victim}")
        yield gone(victim)
        yield progressed(driver.state, 2)
    yield progressed(driver.state, 3)


def test_no_row_is_lost_and_none_is_counted_twice(tmp_path: Path) -> None:
    rarer.write_files(tmp_path)
    settings = {"folder": str(tmp_path), "born": str(time.time())}
    driver = Driver(lose_two_nodes)
    home = tmp_path / "home"
    report = run(APP, home, drive=driver, nodes=2, replace=True, fast=False, settings=settings)
    assert report.verdict == "exact", report.failure
    assert {r.slice.partition("[")[0] for r in report.faults[1].recoveries} >= KINDS

    visits = rarer.cuts(delivered(home, "seen"))
    assert len(visits) == report.epochs
    expected = rarer.expected(visits)
    assert min(rows(expected).values()) > 20
    assert differences(home, expected) == []
