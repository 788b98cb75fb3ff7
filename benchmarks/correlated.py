"""How soon output goes on after a node and after a whole domain is lost, with no, half of and all slices planned.

One run of `examples/recovery` for every case, on nodes in two domains, after Su and Zhou 2016, Figures 7, 8 and 10.
The node, or the domain, that hosts the root of the tree is killed when all planned slices are protected and the windows
are full. Slices outside the plan have checkpoints only; *source replay* has no plan and no checkpoint either, so that a
lost slice is made again from the first row. All seconds count from the kill, detection included:

- tentative: to the first tentative epoch at the sink
- recovered: until the last of the lost slices has made something new
- caught up: until the sink's stable epochs are as punctual as before again, to within an epoch

Fidelity is what was predicted for the tentative epochs, accuracy the share of the stable rows that they had. The stable
epochs of every run are compared with those of a run without failures, digest by digest.

    python benchmarks/correlated.py [--windows 10,30] [--budgets 0,6,11] [--ship-every 5] [--json FILE] [--quick]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scratch import scratch

from understudy.coordination.sqlite import SqliteStore
from understudy.model.messages import Receipt
from understudy.model.recovery import ACTIVE
from understudy.model.report import Report
from understudy.model.view import RunState, SliceState
from understudy.runtime.launcher import Launcher
from understudy.testing.cluster import run

APP = Path(__file__).parents[1] / "examples" / "recovery" / "app.py"
SINK, ROOT = "out", "root[0]"
SLICES = 11
NEVER = 1_000_000
"""Epochs between two checkpoints, where there shall be none."""
AFTERWARDS = 5
PATIENCE_S = 180.0


@dataclass(frozen=True)
class Case:
    """`budget` None is source replay."""

    failure: str
    budget: int | None
    window: int

    def __str__(self) -> str:
        protection = "source replay" if self.budget is None else f"budget {self.budget}"
        return f"{self.failure}, {protection}, windows of {self.window} s"


@dataclass(frozen=True)
class Measured:
    """Seconds since the kill; None: it did not happen."""

    failure: str
    budget: int | None
    window: int
    detected_s: float | None
    tentative_s: float | None
    recovered_s: float | None
    caught_up_s: float | None
    fidelity: float | None
    accuracy: float | None
    tentative_epochs: int
    lost: int
    epochs: int
    exact: bool

    @property
    def ratio(self) -> float | None:
        return self.recovered_s / self.tentative_s if self.tentative_s and self.recovered_s else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", default="10,30", help="seconds")
    parser.add_argument("--budgets", default=f"0,{(SLICES + 1) // 2},{SLICES}", help="working secondaries")
    parser.add_argument("--failures", default="single,correlated")
    parser.add_argument("--replay", action=argparse.BooleanOptionalAction, default=True, help="measure source replay")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--epoch", default="1.0", help="seconds")
    parser.add_argument("--rate", default="96", help="rows a second of each of the four sources")
    parser.add_argument("--ship-every", type=int, default=5, help="epochs between two checkpoints")
    parser.add_argument("--after", default="500 ms", help="tentative_after of the topology")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--quick", action="store_true", help="a lost domain, half of the slices planned, short windows")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.windows, arguments.budgets = "5", str((SLICES + 1) // 2)
        arguments.failures, arguments.replay = "correlated", False
    found: list[Measured] = []
    print(HEAD, flush=True)
    for window in (int(text) for text in arguments.windows.split(",")):
        for one in series(window, arguments):
            found.append(one)
            print(line(one), flush=True)
            if arguments.json:
                # After each of them: a long series that is cut off has not been in vain.
                arguments.json.write_text(json.dumps([asdict(one) for one in found], indent=2) + "\n")
    if not all(one.exact for one in found):
        raise SystemExit("a run with a failure delivered other rows than the run without")


def series(window: int, arguments: argparse.Namespace) -> Iterator[Measured]:
    """All cases of a window; the run without failures is made longer when a case needs it."""
    clean: list[str] = []
    budgets: list[int | None] = [int(text) for text in arguments.budgets.split(",")]
    for failure in arguments.failures.split(","):
        for budget in [*budgets, *([None] if arguments.replay else [])]:
            case = Case(failure, budget, window)
            print(f"{case} …", file=sys.stderr, flush=True)
            report, receipts, killed_at = measure(case, arguments)
            if len(clean) < report.epochs:
                clean = digests_without_failures(case, report.epochs, arguments)
            exact = [one.digest for one in receipts] == clean[: report.epochs]
            yield judge(case, report, receipts, killed_at, exact=exact)


# -- runs


class Killer:
    """Waits until the plan is in force and the windows are full, kills, and ends the run when all is well again."""

    def __init__(self, case: Case, home: Path, epoch_s: float) -> None:
        self._case, self._events = case, home / "events.jsonl"
        # Three windows one after the other, and the epochs in which each is closed.
        self._settled = int(case.window / epoch_s) + 8
        self._killed_at: float | None = None
        self._goal: int | None = None

    def __call__(self, state: RunState, launcher: Launcher) -> None:
        if self._killed_at is None:
            if state.epoch >= self._settled and is_well(state) and self._is_planned(state):
                self._killed_at = state.elapsed_s
                launcher.inject(f"kill:{self._victim(state)}")
        elif self._goal is None:
            lost = len(state.lost) > 0 or any(not node.connected for node in state.nodes)
            late = state.elapsed_s > self._killed_at + PATIENCE_S
            if late or (lost and state.branch is None and is_well(state)):
                self._goal = state.epoch + AFTERWARDS
        elif state.epoch >= self._goal:
            launcher.finish()

    def _is_planned(self, state: RunState) -> bool:
        """Whether every operator slice that the plan names has a working secondary."""
        if not self._case.budget:
            return True
        plan = next((event["fields"] for event in events(self._events) if event["kind"] == "plan"), None)
        if plan is None:
            return False
        return all(one.protection in ACTIVE for one in operators(state) if one.slice in plan["slices"])

    def _victim(self, state: RunState) -> str:
        node = next(one.primary for one in state.slices if one.slice == ROOT)
        return node if self._case.failure == "single" else next(n.domain for n in state.nodes if n.name == node)


def operators(state: RunState) -> list[SliceState]:
    return [one for one in state.slices if one.kind == "operator"]


def is_well(state: RunState) -> bool:
    slices = operators(state)
    return bool(slices) and all(one.state == "running" and not one.late for one in slices)


def measure(case: Case, arguments: argparse.Namespace) -> tuple[Report, list[Receipt], float]:
    """The report, what the sink delivered, and the time of day of the kill."""
    with scratch() as home:
        report = run(
            APP,
            home,
            nodes=arguments.nodes,
            domains=2,
            fast=False,
            backlog=1000,
            settings=settings_of(case, arguments),
            drive=Killer(case, home, float(arguments.epoch)),
        )
        receipts = SqliteStore(home / "manager.db").receipts(SINK)
        killed_at = next(one["fields"]["at"] for one in events(home / "events.jsonl") if one["kind"] == "fault")
    if report.verdict != "exact":
        raise SystemExit(f"{case}: {report.verdict}: {report.failure}")
    return report, receipts, killed_at


def digests_without_failures(case: Case, epochs: int, arguments: argparse.Namespace) -> list[str]:
    with scratch() as home:
        run(APP, home, nodes=1, epochs=epochs, settings=settings_of(case, arguments) | {"replicas": "0"})
        return [one.digest for one in SqliteStore(home / "manager.db").receipts(SINK)]


def settings_of(case: Case, arguments: argparse.Namespace) -> dict[str, str]:
    return {
        "window": str(case.window),
        "epoch": arguments.epoch,
        "rate": arguments.rate,
        "seed": str(arguments.seed),
        "replicas": str(case.budget or 0),
        "tentative_after": arguments.after,
        "scheme": "passive_replication",
        "ship_every": str(NEVER if case.budget is None else arguments.ship_every),
    }


def events(path: Path) -> list[dict[str, Any]]:
    """As far as they are written: the last line may be under way."""
    return [json.loads(text) for text in path.read_text().splitlines(keepends=True) if text.endswith("\n")]


# -- figures


def judge(case: Case, report: Report, receipts: Sequence[Receipt], killed_at: float, *, exact: bool) -> Measured:
    (fault,) = report.faults
    shown = [one for one in report.tentative.epochs if one.sink == SINK and one.missing]
    predicted = [one.fidelity for one in shown if one.fidelity is not None]
    had = [one.had for one in shown if one.had is not None]
    delivered = [(one.at - killed_at, one.epoch) for one in receipts]
    return Measured(
        failure=case.failure,
        budget=case.budget,
        window=case.window,
        detected_s=fault.detected_after_s,
        tentative_s=min((round(one.at_s - fault.at_s, 3) for one in shown), default=None),
        recovered_s=max((one.actual_s for one in fault.recoveries), default=None),
        caught_up_s=punctual_again(delivered, report.epoch_s),
        fidelity=round(statistics.mean(predicted), 3) if predicted else None,
        accuracy=round(statistics.mean(had), 3) if had else None,
        tentative_epochs=len(shown),
        lost=len(fault.recoveries),
        epochs=report.epochs,
        exact=exact,
    )


def punctual_again(delivered: Sequence[tuple[float, int]], epoch_s: float) -> float | None:
    """When the first epoch came from which on none was late again; times count from the kill. None if the last was."""
    usual = statistics.median([at - epoch * epoch_s for at, epoch in delivered if at < 0][-10:])
    back = None
    for at, epoch in delivered:
        if at >= 0:
            late = at - epoch * epoch_s > usual + epoch_s
            back = None if late else (at if back is None else back)
    return None if back is None else round(back, 3)


# -- showing

HEAD = (
    f"{'failure':11} {'protection':13} {'window':>6} {'lost':>4} {'detected':>8} {'tentative':>9} {'recovered':>9} "
    f"{'ratio':>6} {'caught up':>9} {'fidelity':>8} {'accuracy':>8} {'epochs':>6}  stable output"
)


def line(one: Measured) -> str:
    protection = "source replay" if one.budget is None else f"budget {one.budget}"
    detected, tentative, recovered = (shown(value) for value in (one.detected_s, one.tentative_s, one.recovered_s))
    verdict = "equal" if one.exact else "DIFFERS"
    return (
        f"{one.failure:11} {protection:13} {one.window:6} {one.lost:4} {detected:>8} {tentative:>9} {recovered:>9} "
        f"{shown(one.ratio, 1):>6} {shown(one.caught_up_s):>9} {shown(one.fidelity):>8} {shown(one.accuracy):>8} "
        f"{one.tentative_epochs:6}  {verdict}"
    )


def shown(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


if __name__ == "__main__":
    main()
