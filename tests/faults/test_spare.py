"""Overload: the primaries of a node go first, secondaries sleep and are refreshed by state, and work again later."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.scripts import Driver, Script, healthy, operators, progressed
from understudy.model.view import RunState
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

APP = Path(__file__).parents[1] / "apps" / "naps.py"


def somebody_sleeps(state: RunState) -> bool:
    return any(replica.sleeps for node in state.nodes for replica in node.replicas)


def test_secondaries_sleep_under_overload_and_catch_up(tmp_path: Path) -> None:
    def script(driver: Driver) -> Script:
        yield healthy(2)
        yield somebody_sleeps
        weaker = [one.protection for one in operators(driver.state) if one.protection != one.scheme]
        assert set(weaker) <= {"passive_standby_hot"}
        yield lambda state: healthy(2)(state) and not somebody_sleeps(state)
        yield progressed(driver.state, 4)

    driver = Driver(script)
    options = {"nodes": 2, "scheme": "active_replication", "fast": False, "backlog": 100}
    report = run(APP, tmp_path / "busy", drive=driver, **options)  # type: ignore[arg-type]
    assert report.verdict == "exact", report.failure
    assert driver.done
    assert report.reactions.read_back >= 2, "by state, not by events"
    # Every row was processed by its primary; had the secondaries done so too, it would be twice as many.
    calm = run(APP, tmp_path / "calm", nodes=1, epochs=report.epochs, primaries_first=False)
    assert report.sinks["out"].digest == calm.sinks["out"].digest
