"""Every stateful kind of operator, every kind of failure: the output is that of a run without failures."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import oracles
from understudy.control.report import Report
from understudy.runtime.application import load
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(480)]

APP = Path(__file__).parents[1] / "apps" / "kinds.py"
EPOCHS = 14


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    home = tmp_path_factory.mktemp("baseline")
    return run(APP, home, epochs=EPOCHS), home


def digests(report: Report) -> dict[str, str]:
    return {name: sink.digest for name, sink in report.sinks.items()}


def output(home: Path, stream: str) -> list[pa.Table]:
    """What a sink wrote, epoch by epoch."""
    return [pq.read_table(path) for path in sorted((home / "out" / stream).glob("*.parquet"))]


def test_the_failure_free_run_agrees_with_plain_python(baseline: tuple[Report, Path]) -> None:
    report, home = baseline
    assert report.verdict == "exact", report.failure
    topology = load(APP)
    payments, clicks = (oracles.source_rows(topology, name, EPOCHS) for name in ("payments", "clicks"))

    delivered = {name: output(home, name) for name in ("large", "totals", "windows", "joined", "running")}
    assert all(len(epochs) == EPOCHS for epochs in delivered.values())
    rows = {
        name: [(epoch, *row.values()) for epoch, table in enumerate(tables) for row in table.to_pylist()]
        for name, tables in delivered.items()
    }
    assert sorted(rows["large"]) == sorted(oracles.large(payments))
    assert sorted(rows["totals"]) == sorted(oracles.totals(payments))
    assert sorted(rows["windows"]) == sorted(oracles.windows(payments))
    assert sorted(row[1:] for row in rows["joined"]) == sorted(oracles.joined(payments, clicks))
    assert sorted(rows["running"]) == sorted((epoch, user, total) for epoch, user, _, total in oracles.totals(payments))


SCENARIOS: dict[str, dict[str, object]] = {
    "a killed node": {"faults": ["kill:node-2@epoch5"]},
    "two killed nodes, replaced": {"faults": ["kill:node-1@epoch4", "kill:node-3@epoch9"], "replace": True},
    "a frozen node": {"faults": ["freeze:node-2@epoch4+5s"]},
    "a killed manager": {"faults": ["kill:manager@epoch4"]},
    "a single node": {"nodes": 1, "master": "local[2]"},
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_failures_leave_no_trace(scenario: str, baseline: tuple[Report, Path], tmp_path: Path) -> None:
    options = SCENARIOS[scenario]
    report = run(APP, tmp_path, epochs=EPOCHS, **options)  # type: ignore[arg-type]
    assert report.verdict == "exact", report.failure
    assert digests(report) == digests(baseline[0])
    assert len(report.faults) == len(options.get("faults", ()))  # type: ignore[arg-type]
    for fault in report.faults:
        assert fault.detected_after_s is not None


def kill_everything(home: Path, epoch: int) -> None:
    """A power cut, as far as a process can see: launcher, manager and nodes at once, in the middle of work."""
    command = [sys.executable, "-m", "understudy", "run", str(APP), "--home", str(home), "--port", "0"]
    process = subprocess.Popen([*command, "--epochs", str(EPOCHS), "--fast", "--quiet"])
    reached = [home / "out" / name / f"epoch-{epoch:010d}.parquet" for name in ("totals", "windows")]
    deadline = time.monotonic() + 120
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
    _, alive = psutil.wait_procs(tree, timeout=10)
    assert not alive
    process.wait()


def test_a_power_cut_then_resume(baseline: tuple[Report, Path], tmp_path: Path) -> None:
    kill_everything(tmp_path, epoch=6)
    report = run(APP, tmp_path, epochs=EPOCHS, resume=True)
    assert report.verdict == "exact", report.failure
    assert digests(report) == digests(baseline[0])


def test_a_power_cut_with_damaged_files(baseline: tuple[Report, Path], tmp_path: Path) -> None:
    """A newest bag is cut short, another has a flipped bit, and a file of a newest shipped checkpoint is gone."""
    kill_everything(tmp_path, epoch=11)
    truncated = sorted((tmp_path / "log" / "payments" / "0").glob("*.bag"))[-1]
    truncated.write_bytes(truncated.read_bytes()[:-100])
    flipped = sorted((tmp_path / "log" / "clicks" / "0").glob("*.bag"))[-1]
    content = bytearray(flipped.read_bytes())
    content[-100] ^= 1
    flipped.write_bytes(content)
    newest = sorted((tmp_path / "checkpoints" / "windows" / "0" / "files").iterdir(), key=lambda p: p.stat().st_mtime)
    victim = next(path for path in sorted(newest[-1].rglob("*"), reverse=True) if path.is_file())
    victim.unlink()
    report = run(APP, tmp_path, epochs=EPOCHS, resume=True)
    assert report.verdict == "exact", report.failure
    assert digests(report) == digests(baseline[0])
