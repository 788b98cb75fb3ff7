"""Runs the availability simulation for the command line and shows its points."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from understudy.errors import InvalidInput
from understudy.planning.availability.importance import IMPORTANCE
from understudy.planning.availability.placement import PLACEMENT
from understudy.planning.availability.selection import SELECTION
from understudy.simulate.availability.run import Experiment, Strategy
from understudy.simulate.availability.summary import Point, summarise

if TYPE_CHECKING:
    from collections.abc import Collection

FULL = "full"


@dataclass(frozen=True)
class Request:
    hosts: int
    load: float
    spare: tuple[float, ...]
    crash: tuple[float, ...]
    heuristics: tuple[str, ...]
    placements: tuple[str, ...]
    selection: str
    level: int
    runs: int
    seed: int

    def experiment(self) -> Experiment:
        _known("heuristic", self.heuristics, {*IMPORTANCE, FULL})
        _known("placement", self.placements, PLACEMENT)
        _known("selection", [self.selection], SELECTION)
        if min(self.hosts, self.runs, self.level) < 1 or self.load <= 0 or min(self.spare) < 0:
            raise InvalidInput(
                "nothing to simulate",
                why="hosts, runs and level are at least 1, loads are positive",
                fix="correct the numbers",
            )
        if not all(0 <= crash <= 1 for crash in self.crash) or not self.crash:
            raise InvalidInput("a crash probability is not in [0, 1]", why=str(self.crash), fix="for 2 % write 0.02")
        strategies = [
            Strategy("product" if heuristic == FULL else heuristic, spare, placement, self.selection, self.level)
            for placement in self.placements
            for heuristic in self.heuristics
            for spare in ((self.load * self.level,) if heuristic == FULL else self.spare)
        ]
        return Experiment(
            tuple(dict.fromkeys(strategies)),
            crash=tuple(sorted(self.crash)),
            hosts=self.hosts,
            load=self.load,
            seed=self.seed,
        )


def run_simulation(request: Request, out: Path | None, master: str | None) -> tuple[list[Point], Path, float]:
    """The points, where their rows are, and the seconds of the job without Spark's start."""
    from understudy.simulate.availability.job import Progress as Done
    from understudy.simulate.availability.job import run_job
    from understudy.simulate.availability.session import session

    experiment = request.experiment()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix="understudy-") as scratch,
        Progress(*columns, console=Console(stderr=True), transient=True) as progress,
    ):
        task = progress.add_task("starting Spark", total=None)
        spark = session(master)
        clock = perf_counter()

        def report(done: Done) -> None:
            progress.update(task, description="simulating", total=done.tasks, completed=done.done)

        folder = run_job(spark, experiment, request.runs, out or Path(scratch) / "runs", report)
        return summarise(folder), folder, perf_counter() - clock


def show_points(points: list[Point], seconds: float, folder: Path | None, plot: Path | None) -> None:
    console = Console()
    crashes = sorted({point.crash for point in points})
    table = Table(title="running queries (%) by host crash probability, mean ± 95 % interval")
    table.add_column("strategy", no_wrap=True)
    table.add_column("copied", justify="right")
    for crash in crashes:
        table.add_column(f"{100 * crash:g} %", justify="right")
    one_placement = len({point.placement for point in points}) == 1
    lines: dict[tuple[str, float, str], dict[float, Point]] = {}
    for point in points:
        lines.setdefault((point.heuristic, point.spare, point.placement), {})[point.crash] = point
    for (heuristic, spare, placement), line in sorted(lines.items(), key=lambda i: i[1][crashes[-1]].running):
        cells = [f"{line[c].running:.2f} ±{line[c].high - line[c].running:.2f}" for c in crashes]
        name = f"{heuristic} {spare:g}" + ("" if one_placement else f" {placement}")
        table.add_row(name, f"{100 * line[crashes[0]].replicated:.0f} %", *cells)
    console.print(table)
    console.print(f"{seconds:.1f} s for {points[0].runs} runs, without Spark's start", highlight=False)
    for what, path in (("results", folder), ("figure", plot)):
        if path is not None:
            console.print(f"{what}: {path}", highlight=False)


def _known(kind: str, given: Collection[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise InvalidInput(
                f"no {kind} is called {name!r}",
                why="they are found by name",
                fix=f"choose from: {', '.join(sorted(known))}",
            )
    if not given:
        raise InvalidInput(f"no {kind} given", why="the list is empty", fix=f"choose from: {sorted(known)}")
