"""Whole runs with the log in Kafka: the rows of a run with files, with a killed node, a killed broker and a resume."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps import sums as app
from tests.oracles import summed
from tests.oracles.delivered import differences
from understudy.log.disk import walk
from understudy.model.view import RunState
from understudy.testing.cluster import run
from understudy.testing.services import Kafka

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

APP = Path(app.__file__)
HALF, EPOCHS, ROWS = 8, 24, 500
SECRET = "hunter2-and-more"


def test_a_run_has_the_rows_of_a_run_with_files_whatever_dies(kafka: Kafka, tmp_path: Path) -> None:
    secrets_file = tmp_path / "kafka.properties"
    secrets_file.write_text(f"sasl.username=app\nsasl.password={SECRET}\n")
    url = f"kafka://{kafka.address}/whole-runs?properties={secrets_file}"
    settings = {"rows": str(ROWS), "scheme": "passive_standby_hot"}
    files = run(APP, tmp_path / "files", epochs=EPOCHS, nodes=2, settings=settings)
    home = tmp_path / "home"
    first = run(APP, home, epochs=HALF, nodes=2, settings=settings, config={"log": {"url": url}})
    assert first.verdict == "exact", first.failure
    assert not list(walk(home / "log")), "no bag lies in the home directory"

    broken = False

    def break_the_broker(state: RunState) -> None:
        nonlocal broken
        if state.epoch >= HALF + 10 and not broken:
            broken = True
            kafka.kill()
            kafka.restart()

    faults = [f"kill:node-1@epoch{HALF + 4}"]
    second = run(APP, home, epochs=EPOCHS, resume=True, faults=faults, watch=break_the_broker)
    assert second.verdict == "exact", second.failure
    assert len(second.faults) == 1
    assert broken
    assert second.sinks["out"].digest == files.sinks["out"].digest
    assert second.sinks["out"].epochs == EPOCHS
    assert differences(home, {"out": summed.sums(app.make, EPOCHS, rows=ROWS)}) == []

    said = [path for path in walk(home) if SECRET.encode() in path.read_bytes()]
    assert said == []
    assert SECRET not in first.model_dump_json() + second.model_dump_json()
