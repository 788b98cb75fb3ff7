"""What adapting gains: predicted fidelity over time of a plan that follows the rates, and of plans that do not.

The four sources of `examples/recovery` get the load of a trace each, count by count. Every count is a look of the
manager: `propose` (`runtime/plans.py`) plans by the rates of the count that has just passed, and `adopt`
(`control/cluster/planned.py`) decides whether the plan replaces the one in force, by threshold and cool-down. It then
holds for the next count. No process is started; what a plan keeps is predicted, not measured. Compared are:

- fixed: planned once, by the mean rates of the first hour
- hindsight: planned once, by the mean rates of the whole trace, which nobody knows beforehand
- adapting: what the manager does
- bound: for every count the best plan by its own rates, which are known only afterwards

Traces are files of numenta/NAB, looked for in --data; where one is missing, a seeded shape is used and named.

    python benchmarks/adapting.py [--budgets 4,6,9] [--days 7] [--data DIR] [--json FILE] [--plot FILE.svg]
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from understudy.control.application.fusion import lay_out
from understudy.control.cluster.detector import Detector
from understudy.control.cluster.planned import adopt, remembered
from understudy.control.cluster.snapshot import Memory, Snapshot
from understudy.model.config import DEFAULTS, PlanSection
from understudy.model.layout import Kind, Layout
from understudy.model.messages import ReplicaStatus, State, Steps
from understudy.model.names import SliceId
from understudy.model.replication import Proposal, ReplicaPlan
from understudy.model.snapshot import Assignment, NodeView, Phase
from understudy.planning.replication.from_layout import problem_of
from understudy.planning.replication.metrics import Metrics
from understudy.runtime.application import load
from understudy.runtime.plans import Order, propose
from understudy.sources.shapes import Diurnal

ROOT = Path(__file__).parents[1]
APP = ROOT / "examples" / "recovery" / "app.py"
DATA = Path(os.environ.get("UNDERSTUDY_DATA", ROOT.parent / "shared" / "data"))
SOURCES = 4
COUNT_S = 300.0
HOUR, DAY = 12, 288
"""Counts of five minutes in an hour and in a day."""
SELECTIVITY = 0.5
"""Rows that an operator of the example emits for each that it reads."""

Loads = Sequence[Sequence[float]]
"""For every count, the rows a second of every source."""


@dataclass(frozen=True)
class Trace:
    name: str
    origin: str
    loads: Loads


@dataclass(frozen=True)
class Replayed:
    """Mean predicted fidelity of each way, and how often the adapting plan changed; the curves are for the figure."""

    trace: str
    origin: str
    budget: int
    counts: int
    fixed: float
    hindsight: float
    adapting: float
    bound: float
    changes: int
    curves: dict[str, tuple[float, ...]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budgets", default="4,6,9", help="of the eleven slices; one source, one half, three sources")
    parser.add_argument("--days", type=int, default=7, help="of the traces")
    parser.add_argument("--data", type=Path, default=DATA, help="where the traces are")
    parser.add_argument("--seed", type=int, default=1, help="of the shapes that stand in for missing traces")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--plot", type=Path, help="draw them here")
    arguments = parser.parse_args()
    layout = layout_of(APP)
    found = []
    for trace in (messages(arguments), regions(arguments)):
        for budget in (int(text) for text in arguments.budgets.split(",")):
            print(f"{trace.name}, budget {budget} …", file=sys.stderr, flush=True)
            found.append(replay(trace, budget, layout, DEFAULTS.plan))
    show(found)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(one) for one in found], indent=2) + "\n")
    if arguments.plot:
        plot(found, arguments.plot)


# -- loads


def messages(arguments: argparse.Namespace) -> Trace:
    """Messages about two companies, each at two moments a month apart: bursts that nothing announces."""
    names = ("nab-Twitter_volume_AAPL.csv.gz", "nab-Twitter_volume_GOOG.csv.gz")
    length = arguments.days * DAY
    if not all((arguments.data / name).exists() for name in names):
        rng = np.random.default_rng(arguments.seed)
        steps = rng.normal(0.0, 0.5, (length, SOURCES))
        logs = np.zeros((length, SOURCES))
        for row in range(1, length):
            logs[row] = 0.9 * logs[row - 1] + steps[row]
        return Trace("messages", f"seeded bursts (seed {arguments.seed})", np.exp(logs).tolist())
    series = [counts_in(arguments.data / name) for name in names]
    starts = (0, min(len(one) for one in series) - length)
    columns = [one[start : start + length] for start in starts for one in series]
    return Trace("messages", "Twitter volume of AAPL and GOOG", evened(columns))


def regions(arguments: argparse.Namespace) -> Trace:
    """The passengers of a city, in four regions six hours apart: the load goes round with the day."""
    path, length = arguments.data / "nab-nyc_taxi.csv.gz", arguments.days * DAY
    if not path.exists():
        day = Diurnal(1.0, day_s=DAY * COUNT_S)
        columns = [[day((n + k * DAY / SOURCES) * COUNT_S) for n in range(length)] for k in range(SOURCES)]
        return Trace("regions", "the shape Diurnal", evened(columns))
    halves = counts_in(path)
    # Counts of half an hour, so that six of ours lie between two of them.
    whole = np.interp(np.arange(len(halves) * 6) / 6, np.arange(len(halves)), halves).tolist()
    shift = DAY // SOURCES
    return Trace(
        "regions", "taxi passengers of New York", evened([whole[k * shift :][:length] for k in range(SOURCES)])
    )


def counts_in(path: Path) -> list[float]:
    with gzip.open(path, "rt") as lines:
        return [float(row["value"]) for row in csv.DictReader(lines)]


def evened(columns: Sequence[Sequence[float]]) -> Loads:
    """The columns as rows, each column with a mean of one: no source is larger than another in the long run."""
    table = np.array(columns)
    even: Loads = (table / table.mean(axis=1, keepdims=True)).T.tolist()
    return even


# -- the replay


def layout_of(path: Path) -> Layout:
    app = load(path)
    return lay_out(app, dict.fromkeys((one.name for one in app.operators), True))


def rates_of(load: Sequence[float], layout: Layout) -> dict[SliceId, float]:
    """Rows a second of every slice, given those of the sources; operators come after those they read."""
    rates: dict[SliceId, float] = dict(zip(layout.of_kind(Kind.SOURCE), load, strict=True))
    for vertex in layout.vertices:
        if vertex.kind is Kind.OPERATOR:
            read = sum(rates[SliceId(edge.upstream, 0)] for edge in vertex.edges)
            rates[SliceId(vertex.name, 0)] = SELECTIVITY * read
    return rates


def replay(trace: Trace, budget: int, layout: Layout, limits: PlanSection) -> Replayed:
    loads = np.array(trace.loads)
    fixed = _planned(loads[:HOUR].mean(axis=0), budget, layout, limits)
    hindsight = _planned(loads.mean(axis=0), budget, layout, limits)
    current, changes = fixed, 0
    curves: dict[str, list[float]] = {name: [] for name in ("fixed", "hindsight", "adapting", "bound")}
    for number, rows in enumerate(trace.loads):
        rates = rates_of(rows, layout)
        metrics = Metrics(problem_of(layout, (), rates))
        curves["fixed"].append(fidelity(metrics, fixed))
        curves["hindsight"].append(fidelity(metrics, hindsight))
        curves["adapting"].append(fidelity(metrics, current))
        proposal = propose(Order(layout, frozenset(), rates, budget, current, limits, COUNT_S))
        curves["bound"].append(proposal.plan.fidelity)
        after = looked(proposal, current, layout, (number + 1) * COUNT_S)
        changes += after is not current
        current = after
    means = {name: statistics.mean(curve) for name, curve in curves.items()}
    kept = {name: tuple(round(value, 4) for value in curve) for name, curve in curves.items()}
    return Replayed(trace.name, trace.origin, budget, len(trace.loads), **means, changes=changes, curves=kept)


def _planned(load: np.ndarray, budget: int, layout: Layout, limits: PlanSection) -> ReplicaPlan:
    rates = rates_of(load.tolist(), layout)
    return propose(Order(layout, frozenset(), rates, budget, None, limits, COUNT_S)).plan


def fidelity(metrics: Metrics, plan: ReplicaPlan) -> float:
    numbers = metrics.problem.task_numbers
    return metrics.output_fidelity(metrics.alive(numbers[str(one)] for one in plan.slices))


def looked(proposal: Proposal, current: ReplicaPlan, layout: Layout, age_s: float) -> ReplicaPlan:
    """The plan in force after a decision of the manager about a proposal, in a run where all is well."""
    memory = Memory(plan=current)
    for one in adopt(well(layout, proposal, memory, age_s), layout):
        memory = remembered(memory, one)
    return memory.plan or current


def well(layout: Layout, proposal: Proposal, memory: Memory, age_s: float) -> Snapshot:
    """Every slice works on one node."""
    replicas = tuple(
        ReplicaStatus(slice=one, generation=1, state=State.RUNNING, steps=Steps(done=True)) for one in layout.slices
    )
    return Snapshot(
        phase=Phase.RUNNING,
        layout=layout,
        nodes=(NodeView("node-1", connected=True, ready=True, silent_s=0.0, replicas=replicas),),
        assignments=tuple(Assignment(one, "node-1", 1) for one in layout.slices),
        wanted_nodes=1,
        replace=False,
        delivered={},
        goal=None,
        waited_s=0.0,
        detector=Detector(),
        age_s=age_s,
        memory=memory,
        planned=True,
        proposal=proposal,
    )


# -- showing


def show(found: Sequence[Replayed]) -> None:
    for trace, origin in {one.trace: one.origin for one in found}.items():
        print(f"{trace}: {origin}")
    print(f"{'load':9} {'budget':>6} {'counts':>6} {'fixed':>6} {'hindsight':>9} {'adapting':>8} {'bound':>6} "
          f"{'gain':>6} {'changes':>7}")  # fmt: skip
    for one in found:
        print(f"{one.trace:9} {one.budget:6} {one.counts:6} {one.fixed:6.3f} {one.hindsight:9.3f} {one.adapting:8.3f} "
              f"{one.bound:6.3f} {one.adapting - one.fixed:+6.3f} {one.changes:7}")  # fmt: skip


def plot(found: Sequence[Replayed], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "understudy"
    import matplotlib.pyplot as plt

    traces = list(dict.fromkeys(one.trace for one in found))
    figure, axes = plt.subplots(len(traces), figsize=(7.5, 2.6 * len(traces)), squeeze=False)
    styles: Mapping[str, Any] = {
        "bound": {"color": "#cccccc", "lw": 2.2},
        "fixed": {"color": "#c8553d", "lw": 0.9},
        "adapting": {"color": "#1d3a6b", "lw": 0.9},
    }
    for panel, trace in zip(axes.flat, traces, strict=True):
        several = [one for one in found if one.trace == trace]
        shown = several[len(several) // 2]
        days = np.arange(shown.counts)[HOUR - 1 :: HOUR // 2] / DAY
        for name, style in styles.items():
            panel.plot(days, smoothed(shown.curves[name])[HOUR - 1 :: HOUR // 2], label=name, **style)
        panel.set(ylabel="predicted fidelity", ylim=(0, 1), title=f"{trace} ({shown.origin}), budget {shown.budget}")
        panel.title.set_fontsize(9)
        panel.grid(alpha=0.3)
    axes.flat[0].legend(fontsize=7, ncols=3)
    axes.flat[-1].set_xlabel("days; means of an hour")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def smoothed(curve: Sequence[float]) -> list[float]:
    """Means of the hour before."""
    return [statistics.fmean(curve[max(0, n - HOUR + 1) : n + 1]) for n in range(len(curve))]


if __name__ == "__main__":
    main()
