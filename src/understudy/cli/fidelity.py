"""`understudy fidelity`: what a failure leaves of the output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from understudy.cli.problems import load_problem
from understudy.errors import InvalidInput


def fidelity(
    file: Annotated[Path, typer.Argument(help="A problem (.json, .yaml) or an application (.py).")],
    failed: Annotated[str | None, typer.Option(help="Tasks that failed, such as O1[0],O2[1].")] = None,
    replicated: Annotated[
        str | None, typer.Option(help="The only tasks that survive, all others having failed.")
    ] = None,
    rates: Annotated[Path | None, typer.Option(help="For an application: rate of each slice, as JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Output fidelity, internal completeness and the information loss of every task."""
    import numpy as np

    from understudy.planning.replication.metrics import Metrics

    if (failed is None) == (replicated is None):
        raise InvalidInput(
            "it is not clear which tasks are alive",
            why="exactly one of --failed and --replicated tells it",
            fix="use --failed O1[0],O2[1] or --replicated O1[0],O2[1]; an empty list is --failed ''",
        )
    problem = load_problem(file, rates)
    metrics = Metrics(problem)
    named = metrics.alive(problem.numbers(_names(failed if failed is not None else replicated or "")))
    alive = named if failed is None else ~named
    loss = 1 - metrics.task_fidelity(alive)
    result = {
        "output_fidelity": metrics.output_fidelity(alive),
        "internal_completeness": metrics.internal_completeness(alive),
        "loss": {name: float(value) for name, value in zip(problem.tasks, np.maximum(loss, 0.0), strict=True)},
    }
    if as_json:
        typer.echo(json.dumps(result))
        return
    table = Table(title=f"{int(alive.sum())} of {problem.task_count} tasks alive")
    table.add_column("task")
    table.add_column("alive")
    table.add_column("loss", justify="right")
    for name, lives, value in zip(problem.tasks, alive, loss, strict=True):
        table.add_row(name, "yes" if lives else "no", f"{value:.4f}")
    console = Console(highlight=False)
    console.print(table)
    console.print(f"output fidelity       {result['output_fidelity']:.6f}")
    console.print(f"internal completeness {result['internal_completeness']:.6f}")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
