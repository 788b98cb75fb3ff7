"""Every scheme protects every kind of operator: the output is what plain Python says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps import kinds as app
from tests.faults.scripts import Driver, Script, both, busiest, gone, progressed, protected_by
from tests.oracles import kinds
from tests.oracles.delivered import differences, rows
from understudy.model.capabilities import LADDER
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

APP = Path(app.__file__)
KINDS = {"large", "totals", "windows", "joined", "running"}


def kill_under_every_scheme(driver: Driver) -> Script:
    """With two nodes, whoever takes over hosts everything from the first kill on: so each later one hits every kind."""
    schemes = [LADDER[0], *LADDER]
    for scheme in schemes:
        driver.switch_all(scheme)
        yield protected_by(scheme)
        yield both(progressed(driver.state, 1), protected_by(scheme))
        victim = busiest(driver.state)
        driver.launcher.inject(f"kill:{victim}")
        yield gone(victim)
        yield progressed(driver.state, 1)


def test_a_kill_under_every_scheme_leaves_no_trace(tmp_path: Path) -> None:
    driver = Driver(kill_under_every_scheme)
    settings = {"rate": "100", "slices": "1", "epoch": "3 s", "sparse": "1"}
    # By the clock, with room: two copies that work as fast as they can leave none for a third that starts.
    report = run(APP, tmp_path, drive=driver, nodes=2, replace=True, fast=False, settings=settings)
    assert report.verdict == "exact", report.failure
    assert driver.done
    assert len(report.faults) == len(LADDER) + 1

    covered = {(r.slice.partition("[")[0], r.scheme) for fault in report.faults for r in fault.recoveries}
    assert covered >= {(kind, str(scheme)) for kind in KINDS for scheme in LADDER}

    expected = kinds.expected(app.make, report.epochs, rate=100, slices=1, epoch_s=3, make_clicks=app.make_sparse)
    assert min(rows(expected).values()) > 2
    assert differences(tmp_path, expected) == []
