"""`understudy availability`: simulate, plan, optimise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.errors import InvalidInput

if TYPE_CHECKING:
    from understudy.planning.availability.files import PlanningFile

app = typer.Typer(
    help="Which operators to copy into spare capacity, where, and how many queries that keeps running.",
    no_args_is_help=True,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
File = Annotated[Path, typer.Argument(help="Planning file (YAML or JSON): queries, hosts, spare load.")]
Seed = Annotated[int, typer.Option(help="Where all chance comes from.")]


@app.command()
def simulate(
    hosts: Annotated[int, typer.Option(help="Hosts of capacity 1 for the system load.")] = 100,
    load: Annotated[float, typer.Option(help="Load of all queries together.")] = 100.0,
    spare: Annotated[str, typer.Option(help="Spare loads for replicas, comma-separated.")] = "50",
    crash: Annotated[str, typer.Option(help="Host crash probabilities.")] = "0.0025,0.005,0.01,0.02,0.03",
    heuristics: Annotated[
        str, typer.Option(help="Importance heuristics; `full` is everything replicated once.")
    ] = "random,out-degree,low-utilisation,product,full",
    placement: Annotated[str, typer.Option(help="Placements: first-fit, coloured, interleaved.")] = "first-fit",
    selection: Annotated[str, typer.Option(help="simple, at-once, density or exact.")] = "simple",
    level: Annotated[int, typer.Option(help="Most replicas of one operator.")] = 1,
    runs: Annotated[int, typer.Option(help="Runs per point, each with new queries and new failures.")] = 1000,
    seed: Seed = 1,
    out: Annotated[Path | None, typer.Option(help="Folder for the Parquet results.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the figure to this file (.svg, .png).")] = None,
    master: Annotated[str | None, typer.Option(help="Spark master; local[2] without it.")] = None,
    as_json: Json = False,
) -> None:
    """Share of running queries after a day of host failures, as one Spark job."""
    from understudy.cli.availability_run import Request, run_simulation, show_points

    request = Request(
        hosts=hosts,
        load=load,
        spare=_numbers("--spare", spare),
        crash=_numbers("--crash", crash),
        heuristics=_words(heuristics),
        placements=_words(placement),
        selection=selection,
        level=level,
        runs=runs,
        seed=seed,
    )
    points, folder, seconds = run_simulation(request, out, master)
    if plot is not None:
        from understudy.simulate.availability.figure import draw

        draw(points, load, plot, f"{runs} runs, {hosts} hosts, system load {load:g}")
    if as_json:
        rows = [point.as_dict() for point in points]
        content = {"seconds": seconds, "results": str(folder) if out else None, "points": rows}
        typer.echo(json.dumps(content, indent=1))
        return
    show_points(points, seconds, folder if out else None, plot)


@app.command()
def plan(
    file: File,
    spare: Annotated[float | None, typer.Option(help="Spare load; overrides the file.")] = None,
    heuristic: Annotated[str, typer.Option(help="Importance heuristic.")] = "product",
    selection: Annotated[str, typer.Option(help="simple, at-once, density or exact.")] = "simple",
    placement: Annotated[str, typer.Option(help="first-fit, coloured or interleaved.")] = "first-fit",
    level: Annotated[int, typer.Option(help="Most replicas of one operator.")] = 1,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Replicas, their hosts, and the availability to expect; exits with 1 if something does not fit."""
    import numpy as np

    from understudy.cli.availability_show import plan_content, show_plan
    from understudy.planning.availability.plan import Recipe
    from understudy.planning.availability.plan import plan as make_plan
    from understudy.planning.status import Status

    content = _read(file)
    workload, cluster = content.workload(), content.cluster()
    made = make_plan(
        workload,
        cluster,
        content.spare_load(workload, cluster) if spare is None else spare,
        Recipe(heuristic, selection, placement, level),
        np.random.default_rng(seed),
        content.primary(workload, cluster),
    )
    if as_json:
        typer.echo(json.dumps(plan_content(made), indent=1))
    else:
        show_plan(made)
    if made.status is Status.INFEASIBLE:
        raise typer.Exit(1)


@app.command()
def optimise(
    file: File,
    cost_limit: Annotated[float | None, typer.Option(help="Most availability for this cost.")] = None,
    target: Annotated[float | None, typer.Option(help="Least cost for this availability, e.g. 0.999.")] = None,
    level: Annotated[int, typer.Option(help="Most replicas of one operator.")] = 1,
    rounds: Annotated[int, typer.Option(help="Rounds of the local search.")] = 60,
    generations: Annotated[int, typer.Option(help="Generations of the genetic search.")] = 60,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Best replicas for a goal: heuristics, genetic and local search side by side, with a bound."""
    from rich.console import Console
    from rich.progress import Progress

    from understudy.cli.availability_show import comparison_content, show_comparison
    from understudy.planning.availability.optimise import Problem
    from understudy.planning.availability.optimise import optimise as compare
    from understudy.planning.availability.plan import primary_hosts
    from understudy.planning.status import Status

    content = _read(file)
    workload, cluster = content.workload(), content.cluster()
    primary = content.primary(workload, cluster) or primary_hosts(workload, cluster)
    problem = Problem(workload, cluster, primary, cost_limit, target, level)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("searching", total=rounds + generations)
        compared = compare(problem, seed, rounds, generations, lambda: progress.advance(task))
    if as_json:
        typer.echo(json.dumps(comparison_content(compared), indent=1))
    else:
        show_comparison(compared)
    if compared.best.status is Status.INFEASIBLE:
        raise typer.Exit(1)


def _read(file: Path) -> PlanningFile:
    from understudy.planning.availability.files import parse

    try:
        text = file.read_text()
    except OSError as error:
        raise InvalidInput(f"cannot read {file}", why=error.strerror or str(error), fix="check the path") from None
    return parse(text, str(file))


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _numbers(option: str, text: str) -> tuple[float, ...]:
    def number(word: str) -> Any:
        try:
            return float(word)
        except ValueError:
            raise InvalidInput(
                f"{option} {text!r} is not a list of numbers",
                why=f"{word!r} is none",
                fix=f"for example {option} 0.01,0.02",
            ) from None

    return tuple(number(word) for word in _words(text))
