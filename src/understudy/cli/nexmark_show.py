"""The outcomes of Nexmark queries as a table and as JSON."""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING, Any

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from understudy.cli.nexmark_run import Outcome, Request
    from understudy.nexmark.figures import Figures

NOTHING = "–"


def ratio(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours is not None and theirs else None


def compared(outcome: Outcome, fast: bool) -> float | None:
    """Ours against Spark's: throughput where nothing waits for the clock, latency where it does."""
    if outcome.spark is None:
        return None
    if fast:
        return ratio(outcome.ours.events_per_s, outcome.spark.events_per_s)
    return ratio(outcome.ours.latency_ms, outcome.spark.latency_ms)


def show(console: Console, request: Request, outcomes: Sequence[Outcome]) -> None:
    """A line for every query, and what holds for all of them."""
    table = Table(box=None, header_style="bold")
    table.add_column("query")
    headers = ["events/s", "epoch", "back after"]
    if not request.fast:
        headers = ["events/s", "latency", "95 %", "back after", "late"]
    if request.against_spark:
        headers += ["Spark", "ratio", "same rows"]
    for header in headers:
        table.add_column(header, justify="right")
    table.add_column("verdict")
    for outcome in outcomes:
        table.add_row(*_cells(outcome, request))
    console.print(table)
    ratios = [found for one in outcomes if (found := compared(one, request.fast)) is not None]
    if ratios:
        what = "throughput" if request.fast else "latency"
        console.print(f"median ratio of {what}: {statistics.median(ratios):.2f}", highlight=False)
    for outcome in outcomes:
        if outcome.report.failure is not None:
            console.print(f"{outcome.query}: {outcome.report.failure}", markup=False, highlight=False)


def _cells(outcome: Outcome, request: Request) -> list[str]:
    ours = outcome.ours
    colour = "green" if outcome.well else "red"
    cells = [outcome.query, _number(ours.events_per_s, ",.0f"), _main(ours, request.fast)]
    back, late = _number(outcome.recovery_s, ".2f", " s"), _number(outcome.late_s, ".2f", " s")
    cells += [back] if request.fast else [_number(ours.latency_p95_ms, ",.0f", " ms"), back, late]
    if outcome.spark is not None:
        spark = outcome.spark
        theirs = _number(spark.events_per_s, ",.0f") if request.fast else _main(spark, fast=False)
        cells += [theirs, _number(compared(outcome, request.fast), ".2f"), "yes" if outcome.same_rows else "[red]no[/]"]
    return [*cells, f"[{colour}]{outcome.report.verdict}[/]"]


def _main(figures: Figures, fast: bool) -> str:
    return _number(figures.epoch_ms if fast else figures.latency_ms, ",.0f", " ms")


def _number(value: float | None, form: str, unit: str = "") -> str:
    return NOTHING if value is None else f"{value:{form}}{unit}"


def as_text(request: Request, outcomes: Sequence[Outcome]) -> str:
    """Everything that was measured, as JSON."""
    asked = {
        "rate": request.rate,
        "epochs": request.epochs,
        "epoch": request.epoch,
        "seed": request.seed,
        "fast": request.fast,
        "nodes": request.config.cluster.nodes,
        "scheme": request.config.recovery.scheme,
        "faults": [fault.spec for fault in request.faults],
    }
    return json.dumps({**asked, "queries": [_content(outcome, request.fast) for outcome in outcomes]}, indent=2)


def _content(outcome: Outcome, fast: bool) -> dict[str, Any]:
    return {
        "query": outcome.query,
        "verdict": outcome.report.verdict,
        **outcome.ours.model_dump(),
        "recovery_s": outcome.recovery_s,
        "late_s": None if fast else outcome.late_s,
        "faults": [fault.model_dump() for fault in outcome.report.faults],
        "spark": None if outcome.spark is None else outcome.spark.model_dump(),
        "ratio": compared(outcome, fast),
        "same_rows": outcome.same_rows,
    }
