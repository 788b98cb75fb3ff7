"""The report as one page: everything in it, nothing from elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy.cli.main import app
from understudy.model.messages import Failure
from understudy.model.report import (
    CostReport,
    FaultReport,
    RecoveryReport,
    Report,
    SinkReport,
    SliceReport,
    TransitionReport,
)

STEPS = {"detect": 0.31, "deploy": 0.2, "read_checkpoint": 0.1, "replay": 0.5}
REPORT = Report(
    app="words </script><b>",
    run="r1",
    epoch_s=1.0,
    epochs=30,
    elapsed_s=31.5,
    nodes=("node-1", "node-2"),
    slices={
        "counts[0]": SliceReport(
            primary="node-1",
            secondary="node-2",
            scheme="deployed",
            scheme_time_s={"deployed": 30.0},
            gaps=(),
            forgotten=(),
            differed=0,
            epoch=29,
            rows_in=10,
            rows_out=5,
            state_rows=3,
            state_bytes=90,
        )
    },
    faults=(
        FaultReport(
            spec="kill:node-2@epoch12",
            at_s=12.4,
            detected_after_s=0.31,
            recoveries=(
                RecoveryReport(
                    slice="counts[0]",
                    scheme="passive_replication",
                    steps=STEPS,
                    actual_s=1.11,
                    idle_s=0.0,
                    away_s=1.11,
                    epochs_replayed=2,
                ),
            ),
        ),
    ),
    transitions=(
        TransitionReport(slice="counts[0]", before="passive_replication", scheme="deployed", at_s=3.0, seconds=0.4),
        TransitionReport(slice="counts[0]", before="deployed", scheme="active_standby", at_s=9.0, seconds=None),
    ),
    decisions=(),
    sinks={
        "out": SinkReport(
            epochs=30,
            rows=99,
            lost_epochs=0,
            duplicate_epochs=0,
            gaps=(),
            digest="abc",
            max_gap_s=1.4,
            max_late_s=2.0,
        )
    },
    costs=CostReport(
        cpu_s={"node-1": 9.5},
        peak_memory_bytes={"node-1": 400_000_000},
        bytes_received=2048,
        bytes_pulled=0,
        bytes_published=1,
        bytes_shipped=2,
    ),
    diverged=(),
    failure=None,
    verdict="exact",
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "r.json"
    path.write_text(REPORT.model_dump_json())
    return path


def ask(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["report", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_the_page_is_whole_and_asks_nobody(file: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    event = {"number": 1, "at": 5.0, "kind": "fault", "text": "a <fault>", "fields": {}, "cause": None}
    events.write_text(json.dumps(event) + "\n" + '{"number": 2, "at"')
    out = tmp_path / "out.html"
    assert "exact" in ask(str(file), "--html", str(out), "--events", str(events))
    page = out.read_text()
    written = page.split("<script>")[0]
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", written)
    assert "kill:node-2@epoch12" in page
    assert "a &lt;fault&gt;" in page
    assert "never reached" in page
    assert "words &lt;/script&gt;" in page
    embedded = page.split('id="report">')[1].split("</script>")[0]
    assert Report.model_validate_json(embedded) == REPORT


def test_a_failed_run_says_why(tmp_path: Path) -> None:
    failed = REPORT.model_copy(
        update={"verdict": "failed", "faults": (), "failure": Failure(what="x", why="y", fix="z")}
    )
    file, out = tmp_path / "r.json", tmp_path / "o.html"
    file.write_text(failed.model_dump_json())
    ask(str(file), "--html", str(out))
    assert "fix: z" in out.read_text()
    assert 'id="no-faults"' in out.read_text()


def test_without_a_page_the_report_is_printed(file: Path) -> None:
    assert "kill:node-2@epoch12 at 12.4 s" in ask(str(file))
    assert json.loads(ask(str(file), "--json"))["verdict"] == "exact"


def test_files_that_are_no_reports(file: Path, tmp_path: Path) -> None:
    assert "missing.json" in ask(str(tmp_path / "missing.json"), code=2)
    assert "missing.jsonl" in ask(str(file), "--events", str(tmp_path / "missing.jsonl"), code=2)
    other = tmp_path / "other.json"
    other.write_text("[]")
    assert "is no report" in ask(str(other), code=2)
