"""What tentative output costs while nothing fails: the same run with `tentative_after` set and not set.

Runs come in pairs on one machine, in alternating order, and every pair gives a ratio: CPU seconds of all nodes and of
the manager for one epoch, from one epoch of a warm run to another, counted by the operating system for every process.
The median of the ratios is judged; how far they lie apart says how much it is worth.

    python benchmarks/armed.py [--pairs 6] [--epochs 80] [--rows 10000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from scratch import scratch

from understudy.model.view import RunState
from understudy.testing.cluster import run

APP = Path(__file__).with_name("stateful.py")
MANAGER = "understudy.runtime.serve"
WARM_SHARE = 0.4
AT_THE_END = 3
"""Epochs that are left when the last reading is due: processes are still there then."""
GOAL = 1.02


@dataclass(frozen=True)
class Used:
    """CPU seconds."""

    nodes: float
    manager: float

    @property
    def whole(self) -> float:
        return self.nodes + self.manager

    def __sub__(self, other: Used) -> Used:
        return Used(self.nodes - other.nodes, self.manager - other.manager)

    def per(self, epochs: int) -> Used:
        return Used(self.nodes / epochs, self.manager / epochs)


@dataclass(frozen=True)
class Pair:
    """CPU seconds an epoch, with tentative output armed and without it."""

    plain: Used
    armed: Used

    @property
    def ratio(self) -> float:
        return self.armed.whole / self.plain.whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=80, help="of every run; the first are for warming up")
    parser.add_argument("--epoch", default="0.5", help="seconds")
    parser.add_argument("--rows", default="10000", help="rows an epoch")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--after", default="1 s", help="tentative_after of the armed runs")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    found: list[Pair] = []
    for number in range(arguments.pairs):
        used = {}
        for armed in (False, True) if number % 2 == 0 else (True, False):
            print(f"pair {number + 1}: {'armed' if armed else 'plain'} …", file=sys.stderr, flush=True)
            used[armed] = measure(arguments, armed=armed)
        found.append(Pair(used[False], used[True]))
        if arguments.json:
            arguments.json.write_text(
                json.dumps([asdict(one) | {"ratio": one.ratio} for one in found], indent=2) + "\n"
            )
    show(found)


def measure(arguments: argparse.Namespace, *, armed: bool) -> Used:
    meter = Meter(int(arguments.epochs * WARM_SHARE), arguments.epochs - AT_THE_END)
    settings = {"rows": arguments.rows, "epoch_s": arguments.epoch, "scheme": "passive_replication"}
    with scratch() as home:
        report = run(
            APP,
            home,
            nodes=arguments.nodes,
            epochs=arguments.epochs,
            fast=False,
            settings=settings | ({"tentative_after": arguments.after} if armed else {}),
            watch=meter.see,
        )
    if report.verdict != "exact":
        raise SystemExit(f"{report.verdict}: {report.failure}")
    if report.tentative.branches:
        raise SystemExit("the machine was too slow: tentative output began, so the run was not without a failure")
    return meter.per_epoch()


class Meter:
    """Reads the CPU times of our children twice: at the first epoch seen from each of two on."""

    def __init__(self, first: int, last: int) -> None:
        self._due = [first, last]
        self._seen: dict[int, Used] = {}

    def see(self, state: RunState) -> None:
        if self._due and state.epoch >= self._due[0] and state.epoch not in self._seen:
            self._due.pop(0)
            self._seen[state.epoch] = used_by_children()

    def per_epoch(self) -> Used:
        if len(self._seen) < 2:
            raise SystemExit("the run was over before it was measured: give more --epochs")
        first, last = min(self._seen), max(self._seen)
        return (self._seen[last] - self._seen[first]).per(last - first)


def used_by_children() -> Used:
    """Of the manager, and of all nodes with what they have started."""
    manager = nodes = 0.0
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if MANAGER in child.cmdline():
                manager += seconds(child)
            else:
                nodes += sum(seconds(one) for one in (child, *child.children(recursive=True)))
    return Used(nodes, manager)


def seconds(process: psutil.Process) -> float:
    with suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


def show(found: Sequence[Pair]) -> None:
    print(f"{'pair':>4} {'plain ms':>9} {'armed ms':>9} {'manager ms':>17} {'ratio':>6}")
    for number, one in enumerate(found):
        manager = f"{one.plain.manager * 1000:.1f}, {one.armed.manager * 1000:.1f}"
        print(
            f"{number + 1:4} {one.plain.whole * 1000:9.1f} {one.armed.whole * 1000:9.1f} {manager:>17} {one.ratio:6.3f}"
        )
    print(verdict([one.ratio for one in found]))


def verdict(ratios: Sequence[float]) -> str:
    """The median with its spread, beside the goal."""
    middle = statistics.median(ratios)
    kept = "kept" if middle <= GOAL else "MISSED"
    spread = f"from {min(ratios):.3f} to {max(ratios):.3f}"
    if len(ratios) > 1:
        spread += f", standard error of the mean {statistics.stdev(ratios) / len(ratios) ** 0.5:.3f}"
    return f"CPU with tentative output armed: {middle:.3f} of plain ({spread}); goal of {GOAL}: {kept}"


if __name__ == "__main__":
    main()
