"""Machines that are only slow: the secondary stands in, the primary reads back what it missed, and nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.apps import sums as app
from tests.faults.scripts import Condition, Driver, Script, after, either, healthy, progressed
from tests.oracles import summed
from tests.oracles.delivered import differences
from understudy.model.messages import ReplicaStatus
from understudy.model.report import Report
from understudy.model.view import RunState
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

APP = Path(app.__file__)
# One node for each of source, operator and sink, and one that stands by.
NODES = 4
# Long enough to be stood in for, too short to be given up.
FROZEN_S = 8.0
STARVED_S = 6.0
TRIES = 6


def slow_down(script: Callable[[Driver], Script], home: Path, stateless: bool) -> Report:
    options = {"scheme": "passive_standby_hot", "reaction": "speculative", "fast": False, "backlog": 100}
    settings = {"epoch": "500 ms", "stateless": str(int(stateless))}
    driver = Driver(script)
    found = run(APP, home, nodes=NODES, drive=driver, settings=settings, **options)  # type: ignore[arg-type]
    assert found.verdict == "exact", found.failure
    assert driver.done
    oracle = summed.evens if stateless else summed.sums
    assert differences(home, {"out": oracle(app.make, found.epochs, epoch_s=0.5)}) == []
    return found


def primary(state: RunState) -> str:
    return next(one.primary for one in state.slices if one.slice == "sums[0]")


def replica(state: RunState, primary: bool) -> ReplicaStatus | None:
    found = [r for node in state.nodes for r in node.replicas if str(r.slice) == "sums[0]" and r.primary == primary]
    return found[0] if found else None


def read_back(state: RunState) -> int:
    """Epochs whose state the primary has taken over instead of working them off."""
    lead = replica(state, primary=True)
    return lead.read_back if lead is not None else 0


def stands_in(driver: Driver) -> Condition:
    """The secondary has published something nobody else had."""
    before = replica(driver.state, primary=False)
    known = before.first_bags if before is not None else 0

    def check(state: RunState) -> bool:
        secondary = replica(state, primary=False)
        return secondary is not None and secondary.first_bags > known

    return check


def pauses(driver: Driver, useful: list[bool]) -> Script:
    """Freezes the primary until it has had to read back twice."""
    yield healthy(NODES)
    yield progressed(driver.state, 6)
    for _ in range(TRIES):
        bridged, known = stands_in(driver), read_back(driver.state)
        driver.launcher.inject(f"freeze:{primary(driver.state)}", length_s=FROZEN_S)
        # On a busy machine the secondary may stand in too late, or so late that its primary has nothing to read back.
        yield either(bridged, after(driver.state, FROZEN_S))
        yield progressed(driver.state, 3)
        yield healthy(NODES)
        useful.append(read_back(driver.state) > known)
        yield progressed(driver.state, 2)
        if sum(useful) == 2:
            break


def starved(driver: Driver) -> Script:
    """Gives the primary a fifth of the CPU until its secondary has stood in; whether it reads back is open."""
    bridged = stands_in(driver)
    for _ in range(TRIES):
        driver.launcher.inject(f"starve:{primary(driver.state)}", length_s=STARVED_S)
        yield either(bridged, after(driver.state, STARVED_S))
        yield healthy(NODES)
        yield progressed(driver.state, 2)
        if bridged(driver.state):
            break


@pytest.mark.parametrize("stateless", [False, True], ids=["with state", "stateless"])
def test_a_slow_node_is_helped_and_left_alone_again(stateless: bool, tmp_path: Path) -> None:
    """Two pauses are bridged and rolled back; then, with state, the node is starved."""
    useful: list[bool] = []

    def script(driver: Driver) -> Script:
        yield from pauses(driver, useful)
        if not stateless:
            yield from starved(driver)

    report = slow_down(script, tmp_path, stateless)
    assert sum(useful) == 2, "after both pauses the primary took over what it had missed"
    assert report.reactions.stood_in >= 2
    assert report.reactions.rolled_back >= (2 if stateless else 3)
    assert report.reactions.promoted == 0, "it came back in time and was never silent for long"
    assert report.reactions.read_back >= 6
