"""Slices move under load, a target dies meanwhile, a node is given notice: the output is that of a run without."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.apps import chain as app
from tests.faults.scripts import Condition, Driver, Script, both, busiest, either, gone, healthy, operators, progressed
from tests.oracles import summed
from tests.oracles.delivered import differences
from understudy.model.view import RunState
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

APP = Path(app.__file__)


def other_node(state: RunState, slice_name: str) -> str:
    """A node that has neither the primary nor the secondary, if there is one."""
    one = next(one for one in state.slices if one.slice == slice_name)
    ready = [node.name for node in state.nodes if node.connected and node.ready and node.name != one.primary]
    return sorted(ready, key=lambda name: (name == one.secondary, name))[0]


def is_on(slice_name: str, node: str) -> Condition:
    return lambda state: any(
        one.slice == slice_name and one.primary == node and one.moving is None for one in state.slices
    )


def is_moving(slice_name: str) -> Condition:
    return lambda state: any(one.slice == slice_name and one.moving is not None for one in state.slices)


def test_moves_leave_no_trace(tmp_path: Path) -> None:
    ended: list[int] = []

    def script(driver: Driver) -> Script:
        yield healthy(3)
        for one in operators(driver.state):
            target = other_node(driver.state, one.slice)
            driver.launcher.inject(f"move:{one.slice}={target}")
            yield both(is_on(one.slice, target), healthy(3))
        name = operators(driver.state)[-1].slice
        target = other_node(driver.state, name)
        driver.launcher.inject(f"move:{name}={target}")
        yield either(is_moving(name), is_on(name, target))
        driver.launcher.inject(f"kill:{target}")
        yield both(gone(target), healthy(2))
        leaves = busiest(driver.state)
        child = driver.launcher._nodes[leaves].process
        os.kill(child.pid, signal.SIGTERM)
        yield gone(leaves)
        yield lambda _: child.poll() is not None
        ended.append(child.returncode)
        yield progressed(driver.state, 3)

    driver = Driver(script)
    options = {"nodes": 3, "scheme": "passive_standby_hot", "fast": False, "backlog": 100}
    report = run(APP, tmp_path, drive=driver, **options)  # type: ignore[arg-type]
    for one in report.moves:
        print(one)
    assert report.verdict == "exact", report.failure
    assert driver.done
    assert ended == [0], "the node left by itself"
    assert len({one.slice for one in report.moves}) >= 3
    assert report.diverged == ()
    assert differences(tmp_path, {"out": summed.chain(app.make, report.epochs)}) == []
