"""The JVM of a node dies, another stops for a while, their Python processes go on: the output is what it should be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.apps import sums as app
from tests.faults.scripts import Condition, Driver, Script, both, gone, healthy, progressed
from tests.oracles import summed
from tests.oracles.delivered import differences
from understudy.model.view import RunState
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(480)]

APP = Path(app.__file__)
SETTINGS = {"epoch": "500 ms"}


def host(state: RunState) -> str:
    return next(one.primary for one in state.slices if one.slice == "sums[0]")


def back(node: str) -> Condition:
    return lambda state: any(other.name == node and other.connected and other.ready for other in state.nodes)


def test_a_jvm_is_killed_and_another_stops(tmp_path: Path) -> None:
    victims: list[str] = []

    def script(driver: Driver) -> Script:
        yield healthy(3)
        yield progressed(driver.state, 4)
        victims.append(host(driver.state))
        driver.launcher.inject(f"kill:{victims[0]}/jvm")
        yield gone(victims[0])
        yield both(healthy(2), progressed(driver.state, 4))
        victims.append(host(driver.state))
        driver.launcher.inject(f"freeze:{victims[1]}/jvm", length_s=5.0)
        yield gone(victims[1])
        yield back(victims[1])
        yield progressed(driver.state, 4)

    driver = Driver(script)
    found = run(APP, tmp_path, nodes=3, drive=driver, settings=SETTINGS, fast=False, backlog=100)
    assert found.verdict == "exact", found.failure
    assert driver.done
    assert all(fault.detected_after_s is not None for fault in found.faults)
    assert len(found.faults) == 2
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    lost = [event["text"] for event in events if event["kind"] == "node_lost"]
    assert f"{victims[0]} ended: its JVM was killed by SIGKILL" in lost
    assert any(text.startswith(f"the JVM of {victims[1]} has not moved") for text in lost)
    assert differences(tmp_path, {"out": summed.sums(app.make, found.epochs, epoch_s=0.5)}) == []
