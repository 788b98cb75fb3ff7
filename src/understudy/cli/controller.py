"""`understudy controller`: what the controller would do, without Spark."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from understudy.errors import InvalidInput

if TYPE_CHECKING:
    from understudy.simulate.controller_result import Result
    from understudy.simulate.controller_trace import Trace

app = typer.Typer(help="The controller: which scheme for which objective, and what it saves.", no_args_is_help=True)


@app.callback()
def _root() -> None:
    """The controller: which scheme for which objective, and what it saves."""


@app.command()
def simulate(
    objective: Annotated[str, typer.Option(help="Seconds until a slice must be back, comma-separated.")] = "0,1,2,5,20",
    costs: Annotated[str, typer.Option(help="everything or pay-per-machine.")] = "everything",
    guarantee: Annotated[str, typer.Option(help="precise, rollback, gap or amnesia.")] = "precise",
    shape: Annotated[
        str, typer.Option(help="Load: constant, diurnal, spikes, steps, messages; comma-separated.")
    ] = "messages",
    trace: Annotated[Path | None, typer.Option(help="Replay this recorded trace (JSON lines) instead.")] = None,
    slices: Annotated[int, typer.Option(help="Slices of a synthetic trace.", min=1)] = 200,
    epochs: Annotated[int, typer.Option(help="Epochs of a second of a synthetic trace.", min=5)] = 240,
    kills: Annotated[int, typer.Option(help="Nodes killed in each run.", min=0)] = 30,
    cool_down: Annotated[float, typer.Option(help="Seconds between two changes of a slice.", min=0)] = 5.0,
    seed: Annotated[int, typer.Option(help="Where all chance comes from.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Replay a load through the controller's decisions, kill nodes, and count costs and broken promises."""
    from understudy.control.schemes.objectives import Settings
    from understudy.model.recovery import Guarantee, member
    from understudy.simulate.controller_result import Study
    from understudy.simulate.controller_run import simulate as run

    traces = _traces(trace, shape, slices, epochs, seed)
    chosen = Settings(costs=_costs(costs), cool_down_s=cool_down)
    studies = [
        Study(value, member(Guarantee, guarantee, "guarantee"), kills, seed=seed, settings=chosen)
        for value in _numbers(objective)
    ]
    results: list[Result] = []
    with Progress(console=Console(stderr=True, highlight=False), transient=True) as progress:
        task = progress.add_task("simulating", total=sum(one.epochs for one in traces) * len(studies))
        for one in traces:
            results += [run(one, study, lambda: progress.advance(task)) for study in studies]
    if as_json:
        typer.echo(json.dumps({"costs": costs, "results": [result.to_data() for result in results]}))
        return
    _show(results)


def _traces(path: Path | None, shapes: str, slices: int, epochs: int, seed: int) -> list[Trace]:
    from understudy.simulate.controller_trace import Workload, read_trace, synthetic

    if path is not None:
        return [read_trace(path)]
    return [synthetic(Workload(shape=name.strip()), slices, epochs, seed) for name in shapes.split(",")]


def _numbers(text: str) -> list[float]:
    from understudy.model.recovery import Recovery

    try:
        # A recovery knows what an objective may be.
        return [Recovery(objective=float(part)).objective_s or 0.0 for part in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"--objective {text}", why="objectives are seconds", fix="give numbers, such as --objective 1,2,5"
        ) from None


def _costs(name: str) -> Any:
    from understudy.model.costs import PRESETS

    if name not in PRESETS:
        raise InvalidInput(f"--costs {name}", why="there is no such preset", fix=f"use one of {', '.join(PRESETS)}")
    return PRESETS[name]


def _show(results: list[Result]) -> None:
    from understudy.control.schemes.decisions import words
    from understudy.model.capabilities import LADDER

    console = Console(highlight=False)
    table = Table(title="simulated: share of time in each scheme, and costs against always-active")
    table.add_column("objective", justify="right")
    for scheme in reversed(LADDER):
        table.add_column(words(scheme), justify="right")
    for heading in ("CPU", "memory", "network", "nodes", "kills", "broken", "of them established", "low predictions"):
        table.add_column(heading, justify="right")
    origin = ""
    for result in results:
        if result.origin != origin:
            table.add_section()
            origin = result.origin
        table.add_row(
            f"{result.study.objective_s:g} s",
            *[f"{result.shares[scheme]:.0%}" for scheme in reversed(LADDER)],
            *[f"{cost:.2f}" for cost in result.costs.values()],
            str(len(result.kills)),
            str(len(result.broken)),
            str(len(result.broken_established)),
            f"{result.shortfall:.0%}",
        )
    console.print(table)
    for result in results:
        for kill in result.broken:
            predicted = "unknown" if math.isnan(kill.predicted_s) else f"{kill.predicted_s:.2f} s"
            console.print(
                f"{result.study.objective_s:g} s: {kill.slice} at {kill.at_s:.1f} s by {words(kill.scheme)}: "
                f"{kill.actual_s:.2f} s, predicted {predicted}: {kill.cause}"
            )
    console.print(f"traces: {', '.join(dict.fromkeys(result.origin for result in results))}")
