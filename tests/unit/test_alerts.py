"""The alert rules in deploy/: each fires when it should and only then, and the runbook explains it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "alerts.yaml"
RULES: list[dict[str, Any]] = [rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]]
STEP_S = 15
WHO = 'job="understudy", instance="m"'


def series(name: str, values: str, **labels: str) -> dict[str, str]:
    more = "".join(f', {label}="{value}"' for label, value in labels.items())
    return {"series": f"{name}{{{WHO}{more}}}", "values": values}


def health(which: str, values: str = "1x120") -> dict[str, str]:
    return series("understudy_slice_health", values, operator="counts", slice="counts[0]", health=which)


def histogram(name: str, fast: str, slow: str, **labels: str) -> list[dict[str, str]]:
    """Observations of at most a second, and of 20 to 60 seconds."""
    return [series(f"{name}_bucket", values, le=le, **labels) for le, values in
            [("1.0", fast), ("20.0", fast), ("60.0", slow), ("+Inf", slow)]]  # fmt: skip


def events(kind: str, values: str) -> dict[str, str]:
    return series("understudy_events_total", values, kind=kind)


RUNNING = series("understudy_run_phase", "1x120", phase="running")
TICKS = "understudy_manager_tick_period_seconds"
WELL = [
    series("up", "1x120"),
    RUNNING,
    series("understudy_run_phase", "0x120", phase="failed"),
    series("understudy_epochs_delivered_total", "0+15x120", sink="out"),
    *(health(which, "0x120") for which in ("down", "tentative", "degraded", "starting", "catching_up")),
    health("healthy"),
    *(events(kind, "0x120") for kind in ("diverged", "ship_failed", "checkpoint_damaged")),
    events("manager", "1x120"),
    series("understudy_slice_lag_epochs", "2x120", operator="counts", slice="counts[0]"),
    series("understudy_nodes_lost", "0x120"),
    series("understudy_node_heartbeat_age_seconds", "0.1x120", node="node-1", domain="a"),
    *histogram("understudy_delivery_latency_seconds", "0+15x120", "0+15x120", sink="out"),
    *histogram("understudy_recovery_duration_seconds", "3x120", "3x120"),
    series(f"{TICKS}_sum", "0+15x120"),
    series(f"{TICKS}_count", "0+280x120"),
]
"""Half an hour of a run that has had three quick recoveries, and delivers an epoch a second."""
FIRING: dict[str, list[dict[str, str]]] = {
    "UnderstudyManagerAbsent": [series("up", "0x120")],
    "UnderstudyRunFailed": [series("understudy_run_phase", "0x20 1x100", phase="failed")],
    "UnderstudyDeliveryStalled": [RUNNING, series("understudy_epochs_delivered_total", "0+15x20 300x100", sink="out")],
    "UnderstudySliceDown": [health("down")],
    "UnderstudyDiverged": [events("diverged", "0x20 1x100")],
    "UnderstudyTentativeOutput": [health("tentative")],
    "UnderstudyDeliveryLate": histogram("understudy_delivery_latency_seconds", "0x120", "0+15x120", sink="out"),
    "UnderstudyLagging": [series("understudy_slice_lag_epochs", "21x120", operator="counts", slice="counts[0]")],
    "UnderstudyRecoverySlow": histogram("understudy_recovery_duration_seconds", "0x120", "0x20 1x100"),
    "UnderstudyNodeLost": [series("understudy_nodes_lost", "1x120")],
    "UnderstudyNodeSilent": [series("understudy_node_heartbeat_age_seconds", "2.5x120", node="node-1", domain="a")],
    "UnderstudySliceDegraded": [health("degraded")],
    "UnderstudyShippingFails": [events("ship_failed", "0x100 1x20")],
    "UnderstudyCheckpointDamaged": [events("checkpoint_damaged", "0x20 1x100")],
    "UnderstudyManagerRestarts": [events("manager", "1x80 2x10 4x30")],
    "UnderstudyManagerSlow": [series(f"{TICKS}_sum", "0+15x120"), series(f"{TICKS}_count", "0+15x120")],
}
"""What makes each alert fire, half an hour after it began."""
PASSING: dict[str, list[dict[str, str]]] = {
    "a slice that is back within seconds": [health("down", "0x100 1 0x19")],
    "a slice that is degraded while a standby is made": [health("degraded", "0x90 1x12 0x18")],
    "a node that freezes for three seconds": [
        series("understudy_node_heartbeat_age_seconds", "0.1x100 2.9 0.1x19", node="node-1", domain="a")
    ],
    "a run that is over": [series("understudy_run_phase", "0x120", phase="running"),
                           series("understudy_epochs_delivered_total", "300x120", sink="out")],
    "one restart of the manager": [events("manager", "1x100 2x20")],
    "shipping that worked again long ago": [events("ship_failed", "0x20 3x100")],
}  # fmt: skip
"""What nobody should be woken for."""


def test_every_alert_is_complete() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule["labels"]["severity"] in ("critical", "warning"), rule["alert"]
        assert set(rule["annotations"]) == {"summary", "description", "runbook"}, rule["alert"]
        assert re.fullmatch(r"Understudy[A-Z][A-Za-z]+", rule["alert"])
        assert rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"


def test_the_runbook_explains_every_alert_and_no_other() -> None:
    text = (ROOT / "docs" / "runbook.md").read_text()
    told = re.findall(r"^### (Understudy\w+)$", text, re.MULTILINE)
    assert told == [rule["alert"] for rule in RULES], "in the order of the rules"


def test_every_alert_has_a_case() -> None:
    assert list(FIRING) == [rule["alert"] for rule in RULES]


def test_rules_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed; it comes with Debian's package 'prometheus'")
    cases: dict[str, tuple[list[dict[str, str]], list[str]]] = {"all is well": (WELL, [])}
    cases |= {alert: (given, [alert]) for alert, given in FIRING.items()}
    cases |= {name: (given, []) for name, given in PASSING.items()}
    tests = [
        {
            "name": name,
            "interval": f"{STEP_S}s",
            "input_series": given,
            "promql_expr_test": [
                {
                    "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                    "eval_time": "29m",
                    "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in expected],
                }
            ],
        }
        for name, (given, expected) in cases.items()
    ]
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(FILE)], "evaluation_interval": f"{STEP_S}s", "tests": tests}))
    for arguments in (["check", "rules", str(FILE)], ["test", "rules", str(file)]):
        done = subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
