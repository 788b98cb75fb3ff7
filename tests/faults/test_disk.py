"""A disk that fills up, and one that must not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apps import sums as app
from tests.oracles import summed
from tests.oracles.delivered import differences
from understudy.log.disk import walk
from understudy.model.view import RunState
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(480)]

APP = Path(app.__file__)
EPOCHS, ROWS = 14, 200_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small file system needs the right to mount one")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_ends_the_run_with_a_reason_and_loses_nothing(small_disk: Path) -> None:
    # Nothing is shipped, so nothing is trimmed, and the bags fill the disk after a few epochs.
    options = {"nodes": 1, "epochs": EPOCHS, "settings": {"rows": str(ROWS), "ship_every": "100"}}
    home = small_disk / "home"
    report = run(APP, home, **options)  # type: ignore[arg-type]
    assert report.verdict == "failed"
    assert report.failure is not None
    assert "space" in report.failure.what + report.failure.why or "full" in report.failure.why
    assert "--resume" in report.failure.fix

    subprocess.run(["mount", "-o", "remount,size=512m", str(small_disk)], check=True)
    resumed = run(APP, home, resume=True, **options)  # type: ignore[arg-type]
    assert resumed.verdict == "exact"
    assert differences(home, {"out": summed.sums(app.make, EPOCHS, rows=ROWS)}) == []


def test_the_home_directory_stays_small(tmp_path: Path) -> None:
    """At a small scale; benchmarks/soak.py does it for hours and watches memory too.

    How many files there are comes in waves, because Spark cleans up by the clock. What must not happen is that files of
    old epochs stay: a leak of one file per epoch would leave sixty of them here.
    """
    old: set[Path] = set()

    def files() -> set[Path]:
        return {path for part in ("log", "checkpoints") for path in walk(tmp_path / part)}

    def watch(state: RunState) -> None:
        if state.epoch <= 60:
            old.update(files())

    report = run(APP, tmp_path, nodes=1, epochs=200, watch=watch)
    assert report.verdict == "exact", report.failure
    kept = sorted(str(path.relative_to(tmp_path)) for path in old & files())
    assert len(old) > 60, "the run was not watched while it was young"
    assert len(kept) <= 20, kept
