"""Machines that are only slow: the secondary stands in, the primary reads back what it missed, and nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.scripts import Condition, Driver, Script, healthy, progressed
from understudy.control.report import Report
from understudy.model.messages import ReplicaStatus
from understudy.model.view import RunState
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

APP = Path(__file__).parents[1] / "apps" / "sums.py"
# One node for each of source, operator and sink, and one that stands by.
NODES = 4
# Long enough to be stood in for, too short to be given up.
FROZEN_S = 8.0
TRIES = 4


def slow_down(script: Callable[[Driver], Script], tmp_path: Path, **more: str) -> Report:
    options = {"scheme": "passive_standby_hot", "reaction": "speculative", "fast": False, "backlog": 100}
    settings = {"epoch": "500 ms", **more}
    driver = Driver(script)
    found = run(APP, tmp_path / "slow", nodes=NODES, drive=driver, settings=settings, **options)  # type: ignore[arg-type]
    assert found.verdict == "exact", found.failure
    assert driver.done
    calm = run(APP, tmp_path / "calm", nodes=1, epochs=found.epochs, settings=settings)
    assert found.sinks["out"].digest == calm.sinks["out"].digest
    return found


def primary(state: RunState) -> str:
    return next(one.primary for one in state.slices if one.slice == "sums[0]")


def replica(state: RunState, lead: bool) -> ReplicaStatus | None:
    found = [r for node in state.nodes for r in node.replicas if r.slice == "sums[0]" and r.lead == lead]
    return found[0] if found else None


def read_back(state: RunState) -> int:
    """Epochs whose state the primary has taken over instead of working them off."""
    lead = replica(state, lead=True)
    return lead.read_back if lead is not None else 0


def stands_in(driver: Driver) -> Condition:
    """The secondary has published something nobody else had."""
    before = replica(driver.state, lead=False)
    known = before.first_bags if before is not None else 0

    def check(state: RunState) -> bool:
        secondary = replica(state, lead=False)
        return secondary is not None and secondary.first_bags > known

    return check


@pytest.mark.parametrize("stateless", ["0", "1"])
def test_pauses_are_bridged_and_rolled_back(stateless: str, tmp_path: Path) -> None:
    useful: list[bool] = []

    def script(driver: Driver) -> Script:
        yield healthy(NODES)
        yield progressed(driver.state, 6)
        for _ in range(TRIES):
            bridged, known = stands_in(driver), read_back(driver.state)
            driver.launcher.inject(f"freeze:{primary(driver.state)}", length_s=FROZEN_S)
            yield bridged
            yield progressed(driver.state, 3)
            yield healthy(NODES)
            # On a busy machine the secondary may stand in so late that it leaves its primary nothing to read back.
            useful.append(read_back(driver.state) > known)
            yield progressed(driver.state, 2)
            if sum(useful) == 2:
                break

    report = slow_down(script, tmp_path, stateless=stateless)
    assert sum(useful) == 2, "after both pauses the primary took over what it had missed"
    assert report.reactions.stood_in >= 2
    assert report.reactions.rolled_back >= 2
    assert report.reactions.promoted == 0, "it came back in time"
    assert report.reactions.read_back >= 6


def test_a_starved_node_is_helped_and_left_alone_again(tmp_path: Path) -> None:
    def script(driver: Driver) -> Script:
        yield healthy(NODES)
        yield progressed(driver.state, 6)
        bridged = stands_in(driver)
        driver.launcher.inject(f"starve:{primary(driver.state)}", length_s=6.0)
        yield bridged
        # It may have kept up in the end; then there is nothing to read back.
        yield healthy(NODES)
        yield progressed(driver.state, 4)

    report = slow_down(script, tmp_path)
    assert report.reactions.rolled_back >= 1
    assert report.reactions.promoted == 0, "it was never silent for long"
