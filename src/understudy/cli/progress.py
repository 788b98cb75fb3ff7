"""What a person sees while a run goes on, and at its end."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from understudy.model.report import Report
from understudy.model.view import RunState

LINE_EVERY_S = 5.0


class Progress:
    """A live line on a terminal; elsewhere a plain line every few seconds."""

    def __init__(self, console: Console, home: Path) -> None:
        self._console = console
        self._home = home
        self._live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None
        self._printed = 0.0
        self._phase = ""
        self._lost: set[str] = set()
        self._missing: tuple[str, ...] | None = None

    def __enter__(self) -> Progress:
        self._console.print(f"home: {self._home}", highlight=False, soft_wrap=True)
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def show_page(self, url: str, token: str | None) -> None:
        """Where to look; with the token behind '#', which browsers keep to themselves, if it is needed."""
        text = f"dashboard: {url}/" + (f"#token={token}" if token else "")
        self._console.print(text, highlight=False, soft_wrap=True)

    def tell(self, text: str) -> None:
        self._console.print(f"[yellow]{text}[/]", highlight=False)

    def show(self, state: RunState) -> None:
        for node in set(state.lost) - self._lost:
            self._console.print(f"[yellow]{state.elapsed_s:6.1f} s  {node} is lost; its slices move[/]")
        self._lost = set(state.lost)
        self._tell_branch(state)
        if self._live is not None:
            self._live.update(_line(state))
        elif state.phase != self._phase or time.monotonic() - self._printed > LINE_EVERY_S:
            self._printed = time.monotonic()
            self._console.print(_words(state), highlight=False, soft_wrap=True)
        self._phase = state.phase

    def _tell_branch(self, state: RunState) -> None:
        """Once when tentative output begins, goes on without other slices, or ends."""
        missing = None if state.branch is None else state.branch.missing
        if missing != self._missing:
            text = "tentative output has ended, all of it is corrected" if state.branch is None else str(state.branch)
            self._console.print(f"[magenta]{state.elapsed_s:6.1f} s  {escape(text)}[/]", highlight=False)
        self._missing = missing


def _words(state: RunState) -> str:
    ready = sum(node.ready for node in state.nodes)
    goal = f" of {state.goal}" if state.goal is not None else ""
    rate = sum(state.rows.values()) / state.elapsed_s if state.elapsed_s > 0 else 0.0
    ahead = max((node.epoch for node in state.nodes), default=-1) + 1 - state.epoch
    lost = f", {len(state.lost)} lost" if state.lost else ""
    return (
        f"{state.phase}: epoch {state.epoch}{goal}, {max(ahead, 0)} in flight, "
        f"{ready} of {len(state.nodes)} nodes ready{lost}, {rate:,.0f} rows/s{_protection(state)}"
    )


def _protection(state: RunState) -> str:
    """How many operator slices have which scheme, and the largest lag."""
    slices = [entry for entry in state.slices if entry.kind == "operator"]
    if not slices:
        return ""
    schemes = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in Counter(s.scheme for s in slices).items()
    )
    return f", lag {max(entry.lag for entry in slices)}, {schemes}"


def _line(state: RunState) -> Table:
    table = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=state.goal, completed=state.epoch, width=30, pulse=state.goal is None)
    table.add_row(bar, Text(_words(state)))
    return table


def show_report(console: Console, report: Report) -> None:
    colour = {"exact": "green", "failed": "red"}.get(report.verdict, "yellow")
    console.print(f"[bold {colour}]{report.verdict}[/]: {report.epochs} epochs in {report.elapsed_s:.1f} s")
    if report.failure is not None:
        console.print(str(report.failure), markup=False, highlight=False)
    sinks = Table("sink", "epochs", "rows", "lost", "twice", "longest gap", "digest", box=None, header_style="bold")
    for name, sink in report.sinks.items():
        counts = (sink.epochs, sink.rows, sink.lost_epochs, sink.duplicate_epochs)
        sinks.add_row(name, *[f"{count:,}" for count in counts], f"{sink.max_gap_s:.2f} s", sink.digest[:16])
    console.print(sinks)
    for fault in report.faults:
        found = "not noticed" if fault.detected_after_s is None else f"noticed after {fault.detected_after_s:.2f} s"
        console.print(f"{fault.spec} at {fault.at_s:.1f} s: {found}", highlight=False)
        for recovery in fault.recoveries:
            steps = ", ".join(f"{name} {value:.2f}" for name, value in recovery.steps.items())
            text = f"  {recovery.slice} back after {recovery.actual_s:.2f} s ({steps}), "
            console.print(text + f"{recovery.epochs_replayed} epochs replayed", highlight=False)
            if recovery.missed is not None:
                console.print(f"  [yellow]promise broken[/]: {recovery.missed}", highlight=False)
    _show_tentative(console, report)
    for name in report.diverged:
        console.print(f"[yellow]{name} is not deterministic[/]: its replay differed from what it had published")


def _show_tentative(console: Console, report: Report) -> None:
    """Per branch: how soon there was tentative output, and how right it was."""
    for branch in report.tentative.branches:
        epochs = [one for one in report.tentative.epochs if one.branch == branch.number]
        began = "no tentative output" if branch.first_output_s is None else f"first after {branch.first_output_s:.2f} s"
        had = [one.had for one in epochs if one.had is not None]
        right = f", {sum(had) / len(had):.0%} of the stable rows" if had else ""
        without = escape(", ".join(branch.missing))
        text = f"tentative output without {without}: {began}, {len(epochs)} epochs{right}, {len(had)} corrected"
        console.print(f"[magenta]{text}[/]", highlight=False)
