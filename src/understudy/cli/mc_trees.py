"""`understudy mc-trees`: how many minimal complete trees there are, and some of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from understudy.cli.problems import load_problem


def mc_trees(
    file: Annotated[Path, typer.Argument(help="A problem (.json, .yaml) or an application (.py).")],
    show: Annotated[int, typer.Option("--list", help="List the first N trees.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Count the sets of tasks that can produce output on their own."""
    from itertools import islice

    from understudy.planning.replication.mc_trees import count, enumerate_trees

    problem = load_problem(file)
    number = count(problem)
    trees = [[problem.tasks[i] for i in sorted(tree)] for tree in islice(enumerate_trees(problem), show)]
    if as_json:
        typer.echo(json.dumps({"count": number, "trees": trees}))
        return
    console = Console(highlight=False)
    console.print(f"{number:,} MC-trees" if number < 10**15 else f"about 10^{len(str(number)) - 1} MC-trees: {number}")
    for tree in trees:
        console.print("  " + " ".join(tree), markup=False)
