"""A whole run with its checkpoints in an S3 server: a killed node, and a store that is away for ten seconds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.apps import sums as app
from tests.oracles import summed
from tests.oracles.delivered import differences
from understudy.log.disk import walk
from understudy.model.view import RunState
from understudy.testing.cluster import run
from understudy.testing.services import S3
from understudy.testing.services.fixtures import require

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

APP = Path(app.__file__)
EPOCHS, ROWS = 130, 500
AWAY_S = 10.0
SECRET = "hunter2-and-more"


class Outage:
    """Kills the store in the middle of a run. Restarts it after ten seconds, if data has flowed on until then."""

    def __init__(self, s3: S3) -> None:
        self._s3 = s3
        self._since = 0.0
        self._killed_at = -1
        self.back_at = -1

    def watch(self, state: RunState) -> None:
        if state.epoch >= 30 and self._killed_at < 0:
            self._s3.kill()
            self._killed_at, self._since = state.epoch, time.monotonic()
        away = self._killed_at >= 0 and self.back_at < 0
        if away and time.monotonic() - self._since >= AWAY_S and state.epoch >= self._killed_at + 10:
            self.back_at = state.epoch
            self._s3.restart()


def test_a_run_has_the_rows_of_a_run_with_files(tmp_path: Path) -> None:
    require(S3)
    settings = {"rows": str(ROWS), "epoch": "200 ms", "scheme": "passive_standby_hot"}
    files = run(APP, tmp_path / "files", epochs=EPOCHS, nodes=2, settings=settings)
    credentials = tmp_path / "s3.properties"
    credentials.write_text(f"access_key_id=app\nsecret_access_key={SECRET}\n")
    home = tmp_path / "home"
    with S3() as s3:
        s3.create_bucket("checkpoints")
        url = f"s3://checkpoints/runs?endpoint={s3.address}&properties={credentials}"
        outage = Outage(s3)
        report = run(
            APP,
            home,
            epochs=EPOCHS,
            nodes=2,
            fast=False,
            settings=settings,
            config={"checkpoints": {"url": url}},
            faults=["kill:node-1@epoch15"],
            watch=outage.watch,
        )
    assert report.verdict == "exact", report.failure
    assert len(report.faults) == 1
    assert 0 < outage.back_at < EPOCHS, "data flowed on without the store, and the store came back"
    assert report.sinks["out"].digest == files.sinks["out"].digest
    assert differences(home, {"out": summed.sums(app.make, EPOCHS, 0.2, ROWS)}) == []

    events = (home / "events.jsonl").read_text()
    assert '"ship_failed"' in events
    assert '"shipped_again"' in events, "shipping has caught up"
    assert not list(walk(home / "checkpoints")), "no checkpoint lies in the home directory"
    assert [path for path in walk(home) if SECRET.encode() in path.read_bytes()] == []
    assert SECRET not in report.model_dump_json()
