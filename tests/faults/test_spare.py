"""Overload: the primaries of a node go first, secondaries sleep and are refreshed by state, and work again later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.apps import naps as app
from tests.faults.scripts import Driver, Script, healthy, operators, progressed
from tests.oracles import summed
from tests.oracles.delivered import differences
from understudy.model.view import RunState
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

APP = Path(app.__file__)


def asleep(state: RunState) -> set[str]:
    return {str(replica.slice) for node in state.nodes for replica in node.replicas if replica.throttled}


def is_known_to_sleep(state: RunState) -> bool:
    """A secondary sleeps, and the manager counts it as one that waits."""
    return any(one.protection == "passive_standby_hot" for one in operators(state) if one.slice in asleep(state))


def was_throttled(home: Path) -> bool:
    """An overload that lasts takes the query from a secondary; the next one starts from what was shipped by then."""
    events = [json.loads(line) for line in (home / "events.jsonl").read_text().splitlines()]
    return any(event["kind"] == "throttled" for event in events)


def test_secondaries_sleep_under_overload_and_catch_up(tmp_path: Path) -> None:
    def script(driver: Driver) -> Script:
        yield lambda state: state.epoch > 10
        yield is_known_to_sleep
        yield lambda state: healthy(2)(state) and not asleep(state)
        yield progressed(driver.state, 4)

    driver = Driver(script)
    options = {"nodes": 2, "scheme": "active_replication", "fast": False, "backlog": 100}
    report = run(APP, tmp_path, drive=driver, **options)  # type: ignore[arg-type]
    assert report.verdict == "exact", report.failure
    assert driver.done
    assert report.reactions.read_back >= 2 or was_throttled(tmp_path), "by state, not by events"
    assert differences(tmp_path, {"out": summed.naps(app.make, report.epochs)}) == []
