"""Every kind of operator, every kind of failure: the output is what plain Python says, epoch by epoch."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from tests.apps import kinds as app
from tests.faults.scripts import Driver, Script, gone, healthy, progressed
from tests.oracles import kinds
from tests.oracles.delivered import differences, rows
from understudy.model import hashing
from understudy.model.report import Report
from understudy.runtime.backup import back_up, restore
from understudy.runtime.home import Home
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(480)]

APP = Path(app.__file__)
EPOCHS = 14
# Enough that the power is cut before the end, however late it is noticed that an epoch is there.
LONG = 24


def assert_right(home: Path, report: Report) -> None:
    assert report.verdict == "exact", report.failure
    expected = kinds.expected(app.make, report.epochs)
    assert min(rows(expected).values()) > 2
    assert differences(home, expected) == []
    # The digest that a report shows is that of the files.
    for name in expected:
        tables = [pq.read_table(path) for path in sorted((home / "out" / name).glob("*.parquet"))]
        digests = [(epoch, hashing.digest(table), table.num_rows) for epoch, table in enumerate(tables)]
        assert report.sinks[f"{name}-out"].digest == hashing.combine(digests)


def test_a_single_node_without_failures(tmp_path: Path) -> None:
    report = run(APP, tmp_path, epochs=EPOCHS, nodes=1, master="local[2]")
    assert_right(tmp_path, report)


def test_failures_leave_no_trace(tmp_path: Path) -> None:
    """The manager is killed, a node is frozen until it is given up and comes back, another is killed for good."""

    def script(driver: Driver) -> Script:
        yield healthy(3)
        yield progressed(driver.state, 3)
        driver.launcher.inject("kill:manager")
        yield progressed(driver.state, 3)
        driver.launcher.inject("freeze:node-2", length_s=6.0)
        yield progressed(driver.state, 3)
        yield healthy(3)
        driver.launcher.inject("kill:node-1")
        yield gone("node-1")
        yield progressed(driver.state, 3)

    driver = Driver(script)
    report = run(APP, tmp_path, drive=driver)
    assert_right(tmp_path, report)
    assert driver.done
    assert len(report.faults) == 3
    assert all(fault.detected_after_s is not None for fault in report.faults)


def cut_power(home: Path, epoch: int, *options: str) -> None:
    """As far as a process can see: launcher, manager and nodes are killed at once, in the middle of work."""
    command = [sys.executable, "-m", "understudy", "run", str(APP), "--home", str(home), "--port", "0", *options]
    process = subprocess.Popen([*command, "--epochs", str(LONG), "--fast", "--quiet"])
    reached = [home / "out" / name / f"epoch-{epoch:010d}.parquet" for name in ("totals", "windows")]
    deadline = time.monotonic() + 240
    while not all(path.exists() for path in reached):
        assert process.poll() is None, "the run ended by itself"
        assert time.monotonic() < deadline, "the run did not get that far"
        time.sleep(0.02)
    launcher = psutil.Process(process.pid)
    # It is stopped first: it would start a node again that it sees die, while we are looking for the others.
    launcher.suspend()
    tree = [launcher, *launcher.children(recursive=True)]
    for victim in tree:
        # Whoever ended by itself since we looked is as dead as the others will be.
        with suppress(psutil.NoSuchProcess):
            victim.kill()
    _, alive = psutil.wait_procs(tree, timeout=60)
    assert not alive
    process.wait()


def damage(home: Path) -> None:
    """A newest bag is cut short, another has a flipped bit, and a file of a newest shipped checkpoint is gone."""
    truncated = sorted((home / "log" / "payments" / "0").glob("*.bag"))[-1]
    truncated.write_bytes(truncated.read_bytes()[:-100])
    flipped = sorted((home / "log" / "clicks" / "0").glob("*.bag"))[-1]
    content = bytearray(flipped.read_bytes())
    content[-100] ^= 1
    flipped.write_bytes(content)
    newest = sorted((home / "checkpoints" / "windows" / "0" / "files").iterdir(), key=lambda p: p.stat().st_mtime)
    victim = next(path for path in sorted(newest[-1].rglob("*"), reverse=True) if path.is_file())
    victim.unlink()


def test_power_cuts_and_damaged_files(tmp_path: Path) -> None:
    """After a power cut the home is lost, and a backup of it is resumed elsewhere; a second cut damages files there."""
    first, home, backup = Home(tmp_path / "first"), tmp_path / "restored", tmp_path / "backup.tar.gz"
    cut_power(first.path, 5)
    back_up(first, backup)
    shutil.rmtree(first.path)
    restore(backup, Home(home))
    cut_power(home, 10, "--resume")
    damage(home)
    report = run(APP, home, epochs=LONG, resume=True)
    assert_right(home, report)
