"""`/metrics` keeps Prometheus' conventions: what `promtool check metrics` looks at."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from tests.simulated.cluster import Cluster
from tests.theatre import TOKEN

from understudy.runtime.serve import compose

ROOT = Path(__file__).parents[2]
ABBREVIATIONS = re.compile(r"(^|_)(s|ms|sec|secs|b|kb|mb|gb|mem|num|avg|min|milliseconds|megabytes)(_|$)")


@pytest.fixture
def text(tmp_path: Path) -> Iterator[str]:
    cluster = Cluster(tmp_path)
    cluster.until(lambda: cluster.delivered > 2)
    cluster.kill("node-3")
    cluster.until(cluster.settled)
    cluster.steps(1.0)
    client = TestClient(compose(cluster.manager, TOKEN), client=("127.0.0.1", 1), base_url="http://127.0.0.1")
    with client:
        client.get("/metrics")
        answer = client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=")
        yield answer.text


def test_every_metric_is_explained_and_named_by_the_conventions(text: str) -> None:
    families = list(text_string_to_metric_families(text))
    assert len(families) > 20
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    for family in families:
        assert family.documentation.endswith("."), family.name
        assert family.type != "unknown", family.name
        assert re.fullmatch(r"understudy_[a-z_]+", family.name)
        assert not ABBREVIATIONS.search(family.name), "base units, written out"
        for sample in family.samples:
            assert all(re.fullmatch(r"[a-z]+", label) for label in sample.labels)
            if family.type == "counter":
                assert sample.name.endswith(("_total", "_created")), sample.name
            if family.type == "gauge":
                assert not sample.name.endswith(("_total", "_count", "_sum", "_bucket")), sample.name


@pytest.mark.parametrize(
    ("name", "kind", "unit"),
    [
        ("understudy_manager_tick_period_seconds", "histogram", "seconds"),
        ("understudy_recovery_duration_seconds", "histogram", "seconds"),
        ("understudy_delivery_latency_seconds", "histogram", "seconds"),
        ("understudy_node_cpu_seconds", "counter", "seconds"),
        ("understudy_node_memory_bytes", "gauge", "bytes"),
        ("understudy_slice_lag_epochs", "gauge", "epochs"),
        ("understudy_slice_emitted_rows", "counter", "rows"),
        ("understudy_slice_shipped_bytes", "counter", "bytes"),
    ],
)
def test_names_end_with_their_unit(text: str, name: str, kind: str, unit: str) -> None:
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families[name].type == kind
    assert name.endswith(f"_{unit}")


def test_help_and_type_come_once_and_before_the_samples(text: str) -> None:
    seen: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            _, word, name, _ = line.split(" ", 3)
            seen.setdefault(name, []).append(word)
    assert seen
    assert all(words == ["HELP", "TYPE"] for words in seen.values())


def test_the_numbers_are_the_runs(text: str) -> None:
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples[("understudy_run_phase", ("phase", "running"))] == 1
    assert samples[("understudy_epochs_delivered_total", ("sink", "out"))] > 2
    assert samples[("understudy_nodes_lost",)] == 1
    assert samples[("understudy_events_total", ("kind", "node_lost"))] == 1
    assert samples[("understudy_recovery_duration_seconds_count",)] > 0
    assert samples[("understudy_slice_health", ("health", "healthy"), ("operator", "out"), ("slice", "out[0]"))] == 1


def test_the_grafana_dashboard_asks_only_for_metrics_that_exist(text: str) -> None:
    written = json.loads((ROOT / "deploy" / "grafana" / "understudy.json").read_text())
    known = {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}
    # A labelled histogram has no samples before its first observation.
    known |= {f"understudy_delivery_latency_seconds_{part}" for part in ("bucket", "sum", "count")}
    asked = {
        name
        for panel in written["panels"]
        for target in panel["targets"]
        for name in re.findall(r"understudy_[a-z_]+", target["expr"])
    }
    assert len(asked) > 12
    assert asked <= known
    made = runpy.run_path(str(ROOT / "deploy" / "grafana" / "make.py"))["dashboard"]()
    assert written == made, "run deploy/grafana/make.py"


def test_the_alerts_ask_only_for_metrics_and_labels_that_exist(text: str) -> None:
    groups = yaml.safe_load((ROOT / "deploy" / "alerts.yaml").read_text())["groups"]
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    # A labelled histogram has no samples before its first observation.
    known = {sample.name for sample in samples} | {"up", "understudy_delivery_latency_seconds_bucket"}
    pairs = {pair for sample in samples for pair in sample.labels.items()} | {("job", "understudy")}
    labels = {label for label, _ in pairs} | {"instance", "job", "sink"}
    for rule in (rule for group in groups for rule in group["rules"]):
        expression = rule["expr"]
        asked = set(re.findall(r"understudy_[a-z_]+|\bup\b", re.sub(r'"[^"]*"', "", expression)))
        assert asked, rule["alert"]
        assert asked <= known, rule["alert"]
        assert set(re.findall(r'(\w+)="([^"]*)"', expression)) <= pairs, rule["alert"]
        assert set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))) <= labels, rule["alert"]


def test_promtool_agrees(text: str) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed; it comes with Debian's package 'prometheus'")
    result = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
