"""`understudy plan-compare`: how good the planners are, over random topologies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from understudy.errors import Unavailable

if TYPE_CHECKING:
    from understudy.simulate.replication_study import Row
    from understudy.simulate.topologies import TopologySpec

_STYLES = {"exact": "-", "structure-aware": "--", "greedy": ":", "random": (0, (1, 4)), "dynamic": "-."}
_COLOURS = ("#1f6f8b", "#c8553d")


def plan_compare(
    topologies: Annotated[int, typer.Option(help="Random topologies for each specification.", min=1)] = 10,
    spec: Annotated[
        list[str] | None,
        typer.Option(
            help="Such as kind=mixed,joins=0.5,operators=5-10; may be repeated. Default: those of Su and Zhou 2016."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the topologies.")] = 0,
    time_limit: Annotated[float, typer.Option(help="Seconds for each plan.")] = 5.0,
    plot: Annotated[Path | None, typer.Option(help="Draw the curves into this file (.svg, .png).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run all planners over random topologies and budgets, and show the mean output fidelity."""
    from understudy.simulate.replication_study import Study, run, steps

    study = Study(topologies=topologies, time_limit_s=time_limit, seed=seed)
    panels = _panels(spec)
    specs = {f"{panel} {name}".strip(): s for panel, group in panels.items() for name, s in group.items()}
    # The same specification in two panels is computed once.
    distinct = {s: name for name, s in reversed(specs.items())}
    console = Console(stderr=True, highlight=False)
    with Progress(console=console, transient=True) as progress:
        todo = {name: s for s, name in distinct.items()}
        task = progress.add_task("planning", total=steps(study, todo))
        rows = run(study, todo, lambda: progress.advance(task))
    by_spec = {name: [row for row in rows if row.spec == distinct[s]] for name, s in specs.items()}
    if plot is not None:
        _draw(plot, {p: {n: by_spec[f"{p} {n}".strip()] for n in g} for p, g in panels.items()}, topologies)
    if as_json:
        data = [row.to_data() | {"spec": name} for name, group in by_spec.items() for row in group]
        typer.echo(json.dumps({"topologies": topologies, "seed": seed, "rows": data}))
    else:
        _show(by_spec)


def _panels(spec: list[str] | None) -> dict[str, dict[str, TopologySpec]]:
    from understudy.simulate.replication_study import PANELS, parse_spec

    return {"": {text: parse_spec(text) for text in spec}} if spec else PANELS


def _show(by_spec: dict[str, list[Row]]) -> None:
    table = Table(title="mean output fidelity")
    for heading in ("topologies", "budget", "algorithm", "runs", "fidelity", "of exact", "proven", "seconds"):
        table.add_column(heading, justify="left" if heading in ("topologies", "algorithm") else "right")
    for name, rows in by_spec.items():
        for row in rows:
            table.add_row(
                name,
                f"{row.ratio:.0%}",
                row.algorithm,
                str(row.runs),
                f"{row.fidelity:.4f}",
                "-" if row.of_exact is None else f"{row.of_exact:.1%}",
                str(row.proven),
                f"{row.seconds:.3f}",
            )
        table.add_section()
    Console(highlight=False).print(table)


def _draw(path: Path, panels: dict[str, dict[str, list[Row]]], topologies: int) -> None:
    try:
        import matplotlib
    except ImportError as error:
        raise Unavailable(
            "cannot draw", why=str(error), fix="install the plot extra: pip install 'understudy[plot]'"
        ) from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    figure, axes = pyplot.subplots(lines, columns, figsize=(5.2 * columns, 3.8 * lines), squeeze=False)
    for axis, (panel, group) in zip(axes.flat, panels.items(), strict=False):
        for colour, (name, rows) in zip(_COLOURS * len(group), group.items(), strict=False):
            for algorithm in ("exact", "structure-aware", "greedy"):
                points = [(row.ratio, row.fidelity) for row in rows if row.algorithm == algorithm]
                axis.plot(*zip(*points, strict=True), _STYLES[algorithm], color=colour, label=f"{algorithm}, {name}")
        axis.set(title=panel, xlabel="replicas / tasks", ylabel="output fidelity", ylim=(0, 1))
        axis.legend(fontsize=7, frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"mean over {topologies} random topologies each", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
