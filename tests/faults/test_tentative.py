"""A node is away: sinks get tentative output from the others, and whoever reads them sees it corrected."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path

import psutil
import pytest

import understudy as us
from tests.apps import branches as app
from tests.faults.scripts import Driver, Script, gone, progressed, working
from tests.oracles import branches
from understudy.model.view import RunState
from understudy.runtime.launcher import Launcher
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(480)]

APP = Path(app.__file__)
FEW = 3


class Reader:
    """Reads the sink's directory again and again, as docs/tentative.md says, and remembers what it saw."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.tentative: set[int] = set()
        self.stable: set[int] = set()
        self.missing: set[int] = set()
        """Tentative epochs without counts[0]."""

    def look(self) -> None:
        found = us.sinks.epochs(self._directory)
        tentative = {one.epoch for one in found if one.tentative}
        stable = {one.epoch for one in found if not one.tentative}
        assert len(found) == len(tentative | stable), "an epoch is there twice"
        assert self.stable <= stable, "a stable epoch has gone, or is tentative again"
        assert self.tentative <= tentative | stable, "a moment with neither"
        self.tentative |= tentative
        self.stable |= stable
        self.missing |= {one.epoch for one in found if "counts[0]" in one.missing}


def signal_tree(pid: int, number: signal.Signals) -> None:
    parent = psutil.Process(pid)
    for process in [parent, *parent.children(recursive=True)]:
        os.kill(process.pid, number)


def test_tentative_output_is_shown_and_corrected(tmp_path: Path) -> None:
    """A node that hosts half of the counts is frozen until there is tentative output, then thawed; another is killed.

    It is not given up while it is frozen: so the missing slices are away for exactly as long as the test wants.
    """
    directory = tmp_path / "out" / "out"
    reader = Reader(directory)

    def script(driver: Driver) -> Script:
        yield working(3)
        yield progressed(driver.state, FEW)
        victim = host(driver.state, "counts[0]")
        signal_tree(pid(driver.state, victim), signal.SIGSTOP)
        yield lambda _: len(reader.missing) >= FEW
        signal_tree(pid(driver.state, victim), signal.SIGCONT)
        yield lambda _: reader.tentative <= reader.stable
        yield progressed(driver.state, FEW)
        yield working(3)
        killed = host(driver.state, "counts[1]")
        driver.launcher.inject(f"kill:{killed}")
        yield gone(killed)
        yield progressed(driver.state, FEW)

    driver = Driver(script)

    def drive(state: RunState, launcher: Launcher) -> None:
        reader.look()
        driver(state, launcher)

    report = run(APP, tmp_path, fast=False, drive=drive, misses=10_000)
    reader.look()
    assert driver.done
    assert report.verdict == "exact", report.failure
    assert delivered(directory) == branches.groups(app.make, report.epochs)
    assert reader.tentative <= reader.stable, "everything tentative was corrected"
    epochs = [one for one in report.tentative.epochs if one.sink == "out"]
    assert {one.epoch for one in epochs} <= reader.stable
    assert len(epochs) >= FEW
    assert all(one.corrected_after_s is not None and one.had is not None for one in epochs)
    assert sum("counts[0]" in one.missing for one in epochs) >= FEW
    assert report.tentative.branches[0].dropped_at_s is not None


def host(state: RunState, name: str) -> str:
    return next(one.primary for one in state.slices if one.slice == name)


def pid(state: RunState, node: str) -> int:
    return next(one.pid for one in state.nodes if one.name == node)


def delivered(directory: Path) -> list[Counter[tuple[int, ...]]]:
    found = us.sinks.epochs(directory)
    assert not any(one.tentative for one in found)
    return [Counter(tuple(json.loads(line).values()) for line in one.path.read_text().splitlines()) for one in found]
