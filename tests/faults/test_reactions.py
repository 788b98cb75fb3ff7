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


def slow_down(report: Callable[[Driver], Script], tmp_path: Path) -> Report:
    options = {"scheme": "passive_standby_hot", "reaction": "speculative", "fast": False, "backlog": 100}
    driver = Driver(report)
    found = run(APP, tmp_path / "slow", nodes=NODES, drive=driver, settings={"epoch": "500 ms"}, **options)  # type: ignore[arg-type]
    assert found.verdict == "exact", found.failure
    assert driver.done
    calm = run(APP, tmp_path / "calm", nodes=1, epochs=found.epochs, settings={"epoch": "500 ms"})
    assert found.sinks["out"].digest == calm.sinks["out"].digest
    return found


def primary(state: RunState) -> str:
    return next(one.primary for one in state.slices if one.slice == "sums[0]")


def replica(state: RunState, lead: bool) -> ReplicaStatus | None:
    found = [r for node in state.nodes for r in node.replicas if r.slice == "sums[0]" and r.lead == lead]
    return found[0] if found else None


def stands_in(state: RunState) -> bool:
    """The secondary has published something nobody else had, under the eyes of whom it belongs to."""
    secondary = replica(state, lead=False)
    return secondary is not None and secondary.first_bags > 0


def back_at_the_head(driver: Driver) -> Condition:
    """The same primary leads, is where the stream is, and its secondary sleeps again."""
    before = primary(driver.state)
    well = healthy(NODES)

    def check(state: RunState) -> bool:
        lead = replica(state, lead=True)
        return well(state) and primary(state) == before and lead is not None and lead.read_back > 0

    return check


@pytest.mark.parametrize("kind", ["freeze", "starve"])
def test_a_pause_is_bridged_and_rolled_back(kind: str, tmp_path: Path) -> None:
    def script(driver: Driver) -> Script:
        yield healthy(NODES)
        yield progressed(driver.state, 6)
        driver.launcher.inject(f"{kind}:{primary(driver.state)}", length_s=6.0)
        yield stands_in
        yield progressed(driver.state, 3)
        if kind == "freeze":
            yield back_at_the_head(driver)
        else:
            # A starved node may have kept up in the end; then there is nothing to read back.
            yield healthy(NODES)
        yield progressed(driver.state, 4)

    report = slow_down(script, tmp_path)
    assert report.reactions.stood_in >= 1
    assert report.reactions.rolled_back >= 1
    assert report.reactions.promoted == 0, "it came back in time"
    if kind == "freeze":
        assert report.reactions.read_back >= 3
