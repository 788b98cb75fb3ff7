"""`understudy nexmark` without Spark: what is refused, what is measured, what is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from understudy.cli.main import app
from understudy.cli.nexmark_run import APP, Outcome, Request, plain
from understudy.cli.nexmark_show import as_text, show
from understudy.errors import InvalidInput, Unavailable
from understudy.model.config import DEFAULTS
from understudy.model.report import CostReport, FaultReport, RecoveryReport, Report, SinkReport, Verdict
from understudy.nexmark.catalogue import LEFT_OUT, QUERIES, chosen
from understudy.nexmark.figures import Figures, measured
from understudy.runtime.application import load

PAGE = Path(__file__).parents[2] / "docs" / "nexmark.md"
AWAY = RecoveryReport(
    slice="q5[0]", scheme="deployed", steps={}, actual_s=1.5, idle_s=0.25, away_s=1.25, epochs_replayed=2
)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--queries", "q12"], "processing time"),
        (["--queries", "q3,q99"], "q99"),
        (["--queries", "q3,q3"], "twice"),
        (["--rate", "0"], "rate=0"),
        (["--epoch", "soon"], "soon"),
        (["--fault", "explode:node-1@3s"], "explode"),
        (["--fault", "kill:node-7@3s"], "node-7"),
        (["--fault", "switch:q3[0]=deployed@1s", "--queries", "q3,q5"], "q5[0]"),
        (["--scheme", "hope"], "--scheme"),
        (["--home", "{there}", "--queries", "q0"], "already there"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_mistakes_are_explained_before_anything_runs(
    options: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.cli.nexmark_run.run_all", lambda *_: pytest.fail("nothing may run"))
    (tmp_path / "q0").mkdir()
    result = CliRunner().invoke(app, ["nexmark", *[option.format(there=tmp_path) for option in options]])
    assert result.exit_code == 2, result.output
    assert "why:" in result.output
    assert "fix:" in result.output
    assert said in result.output


def test_every_query_has_a_topology_and_is_documented() -> None:
    assert len(QUERIES) >= 20
    assert {f"q{number}" for number in range(24)} == set(QUERIES) | set(LEFT_OUT)
    page = PAGE.read_text()
    for name, query in QUERIES.items():
        topology = load(APP, {"query": name})
        assert [operator.name for operator in topology.operators] == [stage.name for stage in query.stages]
        assert [sink.name for sink in topology.sinks] == [f"{name}-out"]
        assert query.title
        assert f"\n| {name} |" in page


def test_several_queries_make_one_topology() -> None:
    topology = load(APP, {"query": "q4, q5", "rate": "10", "epoch": "2 s"})
    assert [operator.name for operator in topology.operators] == ["q4-sold", "q4", "q5"]
    assert topology.epoch_s == 2.0
    assert [query.name for query in chosen("all")] == list(QUERIES)
    with pytest.raises(InvalidInput, match="no query"):
        chosen("")


def test_the_warm_up_is_not_measured() -> None:
    done = [100.0, 101.0, 102.0, 103.0, 103.5, 104.0, 104.5, 105.0, 105.5, 106.0]
    due = [100.0 + n / 2 for n in range(10)]
    found = measured([10] * 10, done, due, "d")
    assert found.events_per_s == 20.0
    assert found.epoch_ms == 500.0
    assert (found.latency_ms, found.latency_p95_ms) == (1500.0, 1500.0)
    assert measured([10], [1.0], None, "d").events_per_s is None
    assert measured([], [], None, "d").epoch_ms is None


def request(fast: bool = True, against_spark: bool = True, queries: tuple[str, ...] = ("q5",)) -> Request:
    return Request(queries, 2.5, 4, "1 s", 0, (), fast, against_spark, DEFAULTS, None)


def test_events_of_every_epoch_add_up() -> None:
    assert request().events() == [2, 3, 2, 3]


def outcome(verdict: Verdict = "exact", spark: Figures | None = None) -> Outcome:
    costs = CostReport(
        cpu_s={}, peak_memory_bytes={}, bytes_received=0, bytes_pulled=0, bytes_published=0, bytes_shipped=0
    )
    sink = SinkReport(
        epochs=4, rows=9, lost_epochs=0, duplicate_epochs=0, gaps=(), digest="d", max_gap_s=1.0, max_late_s=0.75
    )
    report = Report(
        app="nexmark-q5",
        run="r",
        epoch_s=1.0,
        epochs=4,
        elapsed_s=4.0,
        nodes=("node-1",),
        slices={},
        faults=(FaultReport(spec="kill:node-1@2s", at_s=2.0, detected_after_s=0.25, recoveries=(AWAY,)),),
        transitions=(),
        decisions=(),
        sinks={"q5-out": sink},
        costs=costs,
        diverged=(),
        failure=None,
        verdict=verdict,
    )
    return Outcome("q5", report, Figures(events_per_s=900, epoch_ms=40, latency_ms=120, digest="d"), spark)


PLAIN = Figures(events_per_s=1000, epoch_ms=50, latency_ms=100, latency_p95_ms=110, digest="d")


def shown(asked: Request, *outcomes: Outcome) -> str:
    console = Console(width=160, record=True, quiet=False, file=None, color_system=None)
    with console.capture() as captured:
        show(console, asked, outcomes)
    return captured.get()


def test_a_table_has_ratio_recovery_and_verdict() -> None:
    fast = shown(request(), outcome(spark=PLAIN))
    assert [word for word in ("900", "40 ms", "1.25 s", "1,000", "0.90", "yes", "exact") if word not in fast] == []
    assert "throughput: 0.90" in fast
    paced = shown(request(fast=False), outcome(spark=PLAIN))
    assert [word for word in ("120 ms", "0.75 s", "100 ms", "1.20", "exact") if word not in paced] == []
    assert "latency: 1.20" in paced
    alone = shown(request(against_spark=False), outcome())
    assert "Spark" not in alone


def test_other_rows_than_sparks_are_not_well() -> None:
    other = outcome(spark=PLAIN.model_copy(update={"digest": "x"}))
    assert (other.same_rows, other.well) == (False, False)
    assert (outcome(spark=PLAIN).well, outcome().well, outcome("lossy").well) == (True, True, False)


def test_json_has_everything() -> None:
    found = json.loads(as_text(request(), [outcome(spark=PLAIN)]))
    assert found["rate"] == 2.5
    (query,) = found["queries"]
    assert query["ratio"] == pytest.approx(0.9)
    assert (query["verdict"], query["recovery_s"], query["same_rows"]) == ("exact", 1.25, True)
    assert query["spark"]["events_per_s"] == 1000


def test_a_plain_query_that_fails_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho first >&2; echo no Java >&2; exit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(broken))
    with pytest.raises(Unavailable, match="q5 did not run") as raised:
        plain(request(), "q5", tmp_path / "plain")
    assert raised.value.why == "no Java"
    assert "--against-spark" in raised.value.fix


def test_the_figures_of_a_plain_query_are_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    speaking = tmp_path / "python"
    speaking.write_text(f"#!/bin/sh\necho some warning\necho '{PLAIN.model_dump_json()}'\n")
    speaking.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(speaking))
    assert plain(request(), "q5", tmp_path / "plain") == PLAIN
