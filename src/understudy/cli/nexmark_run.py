"""Runs Nexmark queries for the command line, one topology after the other, and measures them."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import understudy.nexmark
from understudy.cli.progress import Progress
from understudy.coordination.sqlite import SqliteStore
from understudy.errors import InvalidInput, Unavailable
from understudy.model.durations import seconds
from understudy.model.run import Rhythm, RunSpec
from understudy.nexmark.catalogue import QUERIES
from understudy.nexmark.figures import Figures, measured
from understudy.runtime.application import load
from understudy.runtime.home import Home
from understudy.runtime.launcher import Launcher
from understudy.runtime.prepare import check, prepare
from understudy.sources.pace import exact, rows_before

if TYPE_CHECKING:
    from rich.console import Console

    from understudy.model.config import Config
    from understudy.model.faults import Fault
    from understudy.model.report import Report

APP = Path(understudy.nexmark.__file__).with_name("app.py")


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    queries: tuple[str, ...]
    rate: float
    epochs: int
    epoch: str
    seed: int
    faults: tuple[Fault, ...]
    fast: bool
    against_spark: bool
    config: Config
    home: Path | None

    def settings(self, query: str) -> dict[str, str]:
        return {"query": query, "rate": repr(self.rate), "epoch": self.epoch, "seed": str(self.seed)}

    def spec(self, query: str) -> RunSpec:
        return RunSpec(
            id=secrets.token_hex(8),
            app=str(APP),
            settings=self.settings(query),
            epochs=self.epochs,
            fast=self.fast,
            config=self.config,
        )

    def check(self) -> None:
        """Refuses what cannot be run before the first query starts."""
        for query in self.queries:
            check(self.spec(query), load(APP, self.settings(query)), self.faults)
        for path in [] if self.home is None else [self.home / query for query in self.queries]:
            if path.exists():
                raise InvalidInput(
                    f"{path} is already there",
                    why="it holds another run",
                    fix="give another --home, or remove it",
                )

    def events(self) -> list[int]:
        """Input events of every epoch."""
        rate, epoch_s = exact(self.rate), exact(seconds(self.epoch))
        ends = [rows_before(epoch, rate, epoch_s) for epoch in range(self.epochs + 1)]
        return [end - start for start, end in pairwise(ends)]


@dataclass(frozen=True)
class Outcome:
    """What came of one query: its report, its figures, and those of plain Structured Streaming if it was asked for."""

    query: str
    report: Report
    ours: Figures
    spark: Figures | None

    @property
    def same_rows(self) -> bool | None:
        """Whether every epoch has the rows that plain Structured Streaming delivers."""
        return None if self.spark is None else self.spark.digest == self.ours.digest

    @property
    def well(self) -> bool:
        return self.report.verdict == "exact" and self.same_rows is not False

    @property
    def recovery_s(self) -> float | None:
        """How long the slowest slice was away after a fault."""
        return max((one.away_s for fault in self.report.faults for one in fault.recoveries), default=None)

    @property
    def late_s(self) -> float:
        """By how much the worst epoch came later than epochs usually do; means nothing without a clock."""
        return max(sink.max_late_s for sink in self.report.sinks.values())


def run_all(request: Request, console: Console) -> tuple[list[Outcome], bool]:
    """The outcomes in order, and whether somebody interrupted before the last one."""
    found: list[Outcome] = []
    try:
        for number, query in enumerate(request.queries, 1):
            text = f"[bold]{query}[/] ({number} of {len(request.queries)}): {QUERIES[query].title}"
            console.print(text, highlight=False, soft_wrap=True)
            found.append(run_query(request, query, console))
    except KeyboardInterrupt:
        console.print("stopped")
        return found, True
    return found, False


def run_query(request: Request, query: str, console: Console) -> Outcome:
    """On understudy, then, if that is wanted, in plain Structured Streaming; what they wrote is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f"nexmark-{query}-")) if request.home is None else request.home / query
    try:
        report, ours = under_understudy(request, query, folder, console)
        spark = None
        if request.against_spark:
            console.print("the same in plain Structured Streaming")
            spark = plain(request, query, folder / "plain")
    finally:
        if request.home is None:
            shutil.rmtree(folder, ignore_errors=True)
    return Outcome(query, report, ours, spark)


def under_understudy(request: Request, query: str, folder: Path, console: Console) -> tuple[Report, Figures]:
    place, spec = Home(folder.resolve()), request.spec(query)
    try:
        place.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"--home {request.home} cannot be used", why=str(error), fix="give a directory that you may write to"
        ) from error
    with place.lock():
        prepare(place, spec)
        with Launcher(place, spec, 0, request.faults) as launcher, Progress(console, place.path) as progress:
            launcher.watch, launcher.tell = progress.show, progress.tell
            report = launcher.run()
        if report.failure is not None and not launcher.begun:
            raise InvalidInput(report.failure.what, why=report.failure.why, fix=report.failure.fix)
    return report, _measured(request, f"{query}-out", place, report)


def _measured(request: Request, sink: str, place: Home, report: Report) -> Figures:
    store = SqliteStore(place.database)
    try:
        done = [receipt.at for receipt in store.receipts(sink)]
        rhythm = store.fact("rhythm")
    finally:
        store.close()
    due = None
    if not request.fast and rhythm is not None:
        due = [Rhythm(**rhythm).due(epoch) for epoch in range(len(done))]
    return measured(request.events(), done, due, report.sinks[sink].digest)


def plain(request: Request, query: str, folder: Path) -> Figures:
    """In a process of its own, as fresh as the nodes of the other run."""
    from understudy.nexmark.plain import Request as PlainRequest

    asked = PlainRequest(
        query=query,
        folder=folder,
        rate=request.rate,
        seed=request.seed,
        epoch=request.epoch,
        epochs=request.epochs,
        fast=request.fast,
        master=request.config.cluster.master,
        profile=request.config.jvm.profile,
    )
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "understudy.nexmark.plain", asked.model_dump_json()]
    output, errors = folder / "figures.json", folder / "errors.log"
    # It reads nothing; it ends when this end of its standard input closes.
    with output.open("wb") as out, errors.open("wb") as err:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=err)
        try:
            child.wait()
        finally:
            child.kill()
    if child.returncode != 0:
        raise Unavailable(
            f"{query} did not run in plain Structured Streaming",
            why=(errors.read_text(errors="replace").strip().splitlines() or ["it ended without a word"])[-1],
            fix="leave out --against-spark to run it on understudy alone",
        )
    return Figures.model_validate_json(output.read_text().splitlines()[-1])
