"""Writes understudy.json beside this file: a dashboard is mostly repetition, so it is kept as a list of panels.

python deploy/grafana/make.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SOURCE = {"type": "prometheus", "uid": "${source}"}
PANELS: list[tuple[str, str, str, str, list[tuple[str, str]]]] = [
    # title, kind, unit, description, queries with their legends
    ("Slices down", "stat", "none", "Slices without a working primary.",
     [('sum(understudy_slice_health{health="down"})', "")]),
    ("Nodes up", "stat", "none", "Nodes that are connected and ready.", [("sum(understudy_node_up)", "")]),
    ("Delivered epochs", "stat", "none", "Epochs every sink has delivered without a gap.",
     [("min(understudy_epochs_delivered_total)", "")]),
    ("Recoveries", "stat", "none", "Slices that came back.", [("understudy_recovery_duration_seconds_count", "")]),
    ("Slices by health", "timeseries", "none", "How many slices are in which health.",
     [("sum by (health) (understudy_slice_health)", "{{health}}")]),
    ("Throughput", "timeseries", "rowsps", "Rows emitted by the slices of every operator.",
     [("sum by (operator) (rate(understudy_slice_emitted_rows_total[1m]))", "{{operator}}")]),
    ("Delivery latency", "timeseries", "s", "From the moment an epoch was due to its delivery.",
     [("histogram_quantile(0.5, sum by (le, sink) (rate(understudy_delivery_latency_seconds_bucket[5m])))",
       "median, {{sink}}"),
      ("histogram_quantile(0.99, sum by (le, sink) (rate(understudy_delivery_latency_seconds_bucket[5m])))",
       "99 %, {{sink}}")]),
    ("Recovery time", "timeseries", "s", "From a fault to the first new epoch.",
     [("histogram_quantile(0.5, sum by (le) (rate(understudy_recovery_duration_seconds_bucket[30m])))", "median"),
      ("histogram_quantile(0.99, sum by (le) (rate(understudy_recovery_duration_seconds_bucket[30m])))", "99 %")]),
    ("Lag", "timeseries", "none", "Epochs the slowest slice of every operator is behind.",
     [("max by (operator) (understudy_slice_lag_epochs)", "{{operator}}")]),
    ("Events", "timeseries", "none", "What happened, by kind, each minute.",
     [("sum by (kind) (increase(understudy_events_total[1m])) > 0", "{{kind}}")]),
    ("CPU", "timeseries", "none", "Cores every node uses.",
     [("rate(understudy_node_cpu_seconds_total[1m])", "{{node}}")]),
    ("Memory", "timeseries", "bytes", "Memory every node uses.", [("understudy_node_memory_bytes", "{{node}}")]),
    ("Heartbeats", "timeseries", "s", "Time since the last heartbeat of every node.",
     [("understudy_node_heartbeat_age_seconds", "{{node}}")]),
    ("Bytes published and shipped", "timeseries", "Bps", "Bags, and checkpoints.",
     [("sum(rate(understudy_slice_published_bytes_total[1m]))", "published"),
      ("sum(rate(understudy_slice_shipped_bytes_total[1m]))", "shipped")]),
    ("State", "timeseries", "bytes", "State the slices of every operator keep.",
     [("sum by (operator) (understudy_slice_state_bytes)", "{{operator}}")]),
    ("The manager's loop", "timeseries", "s", "Its period, and how long a tick takes.",
     [("rate(understudy_manager_tick_period_seconds_sum[1m]) / rate(understudy_manager_tick_period_seconds_count[1m])",
       "period"),
      ("rate(understudy_manager_tick_duration_seconds_sum[1m])"
       " / rate(understudy_manager_tick_duration_seconds_count[1m])", "tick")]),
]  # fmt: skip
WIDTH = 24


def panel(number: int, place: dict[str, int]) -> dict[str, Any]:
    title, kind, unit, description, queries = PANELS[number]
    targets = [
        {"datasource": SOURCE, "expr": expression, "legendFormat": legend or "__auto", "refId": "ABCD"[at]}
        for at, (expression, legend) in enumerate(queries)
    ]
    return {
        "id": number + 1,
        "title": title,
        "description": description,
        "type": kind,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def places() -> list[dict[str, int]]:
    """Single numbers in one row, then two plots a row."""
    stats = sum(kind == "stat" for _, kind, *_ in PANELS)
    first = [{"x": at * WIDTH // stats, "y": 0, "w": WIDTH // stats, "h": 4} for at in range(stats)]
    rest = [{"x": 12 * (at % 2), "y": 4 + 8 * (at // 2), "w": 12, "h": 8} for at in range(len(PANELS) - stats)]
    return first + rest


def dashboard() -> dict[str, Any]:
    variable = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "title": "understudy",
        "uid": "understudy",
        "tags": ["understudy", "spark"],
        "schemaVersion": 39,
        "timezone": "browser",
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "templating": {"list": [variable]},
        "panels": [panel(number, place) for number, place in enumerate(places())],
    }


if __name__ == "__main__":
    target = Path(__file__).with_name("understudy.json")
    target.write_text(json.dumps(dashboard(), indent=2) + "\n")
    print(target)
