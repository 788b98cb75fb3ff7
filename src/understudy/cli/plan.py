"""`understudy plan`: which tasks get an active replica."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from understudy.cli.problems import load_problem
from understudy.cli.remote import HOME, TOKEN, URL, find
from understudy.errors import InvalidInput

if TYPE_CHECKING:
    from understudy.planning.replication.plan import PlanRequest, ReplicationPlan


def plan(
    file: Annotated[Path, typer.Argument(help="A problem (.json, .yaml) or an application (.py).")],
    budget: Annotated[int, typer.Option("--budget", "-b", help="Number of replicas.")],
    algorithm: Annotated[str, typer.Option(help="exact, dynamic, structure-aware, greedy or random.")] = "exact",
    metric: Annotated[str, typer.Option(help="fidelity or completeness.")] = "fidelity",
    time_limit: Annotated[float, typer.Option(help="Seconds after which the best known plan is given.")] = 60.0,
    rates: Annotated[
        Path | None,
        typer.Option(help="For an application: JSON that maps a slice such as counts[1] to its rate."),
    ] = None,
    seed: Annotated[int, typer.Option(help="For random.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Plan for the running system, by measured rates, and apply the plan to it.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --apply: do not ask.")] = False,
    home: HOME = None,
    url: URL = None,
    token_file: TOKEN = None,
) -> None:
    """Choose the tasks to replicate so that most of the output survives when everything fails at once."""
    from understudy.cli import apply_plan
    from understudy.planning.replication.mc_trees import smallest_tree
    from understudy.planning.replication.metrics import parse_metric
    from understudy.planning.replication.plan import PlanRequest
    from understudy.planning.replication.registry import planner

    if apply and rates is not None:
        raise InvalidInput(
            f"--rates {rates} with --apply",
            why="the running system is planned by the rates that were measured there",
            fix="give one of the two",
        )
    remote = find(home, url, token_file) if apply else None
    state = apply_plan.running(remote, file) if remote is not None else None
    problem = load_problem(file, rates) if state is None else apply_plan.problem_of(state)
    request = PlanRequest(problem, budget, parse_metric(metric), time_limit, seed)
    chosen = planner(algorithm)
    console = Console(highlight=False)
    if remote is not None and state is not None:
        apply_plan.apply(remote, state, chosen(request), yes=yes, as_json=as_json)
        return
    if as_json:
        result = chosen(request)
        useful = None if result.value else len(smallest_tree(request.problem)[0])
        typer.echo(json.dumps({**result.to_data(), "smallest_useful_budget": useful}))
        return
    with console.status(f"planning with {algorithm}"):
        result = chosen(request)
    _show(console, result, request.problem.task_count)
    if not result.value:
        console.print(_too_small(request), soft_wrap=True)


def _too_small(request: PlanRequest) -> str:
    """Why nothing was chosen: fewer tasks than the smallest tree give no output."""
    from understudy.planning.replication.mc_trees import smallest_tree

    tree, proven = smallest_tree(request.problem)
    if len(tree) <= request.budget:
        return "this plan keeps no output alive; --algorithm exact may find one that does"
    names = " ".join(request.problem.tasks[task] for task in sorted(tree))
    needs = f"the smallest useful plan needs {len(tree)}" if proven else f"{len(tree)} are enough"
    return f"no output survives with {request.budget} replicas: {needs} (--budget {len(tree)}): {names}"


def _show(console: Console, result: ReplicationPlan, tasks: int) -> None:
    table = Table(title=f"{result.algorithm}: {len(result.replicas)} replicas for {tasks} tasks", show_header=False)
    gap = (result.upper_bound - result.value) / result.value if result.value else None
    for name, text in (
        ("status", str(result.status)),
        ("output fidelity", f"{result.output_fidelity:.6f}"),
        ("internal completeness", f"{result.internal_completeness:.6f}"),
        (f"no plan has a {result.metric} above", f"{result.upper_bound:.6f}"),
        ("gap", "unknown" if gap is None else f"{gap:.2%}"),
        ("time", f"{result.seconds:.2f} s"),
        ("replicas", _grouped(result.replicas)),
    ):
        table.add_row(name, text)
    console.print(table)


def _grouped(replicas: tuple[str, ...]) -> str:
    """O1[0], O1[2], O3[1] as one line per operator."""
    lines: dict[str, list[str]] = {}
    for name in replicas:
        operator, index = name[:-1].rsplit("[", 1)
        lines.setdefault(operator, []).append(index)
    return "\n".join(f"{operator}: {' '.join(indices)}" for operator, indices in lines.items()) or "none"
