"""The controller on Spark: does it keep its promises when machines die, and what does it save?

Runs `examples/sentiment.py` with objectives of 1, 2, 5 and 20 s under different load shapes, kills nodes at seeded
moments, and compares every recovery with its objective and its prediction. What counts is `away_s`: from `kill -9` to
the first new bag, without the time in which there was no new input. Kills come when the scheme the controller wants is
established; a miss is listed with what protected the slice and which step took longer than predicted.

    python benchmarks/controller_live.py [--kills 4] [--json FILE] [--record TRACE.jsonl]
    python benchmarks/controller_live.py --evolution FILE.svg      one run without kills, drawn over time
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scratch import scratch

from understudy.model.capabilities import LADDER
from understudy.model.report import Report
from understudy.model.view import RunState, SliceState
from understudy.runtime.launcher import Launcher
from understudy.testing.cluster import run

APP = Path(__file__).parents[1] / "examples" / "sentiment.py"
RUNS = (
    (1.0, "constant"),
    (1.0, "spikes"),
    (2.0, "messages"),
    (2.0, "steps"),
    (5.0, "diurnal"),
    (5.0, "spikes"),
    (20.0, "messages"),
    (20.0, "steps"),
)
WARM = 60
"""Epochs a trace leaves out: the code of a new JVM is compiled while it runs."""
HEAD = ("AR", "AS", "hot", "cold", "depl", "PR")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=4, help="for every pair of objective and shape")
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--record", type=Path, help="write a trace for the simulator here (a run without kills)")
    parser.add_argument("--evolution", type=Path, help="draw one slice over time here (a run without kills)")
    parser.add_argument("--seconds", type=float, default=180.0, help="length of a run without kills")
    arguments = parser.parse_args()
    if arguments.record or arguments.evolution:
        watch_one(arguments)
        return
    print(f"seed {arguments.seed}", file=sys.stderr)
    found = []
    for number, (objective, shape) in enumerate(RUNS):
        found.append(measure(objective, shape, arguments.seed + number, arguments))
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=2) + "\n")
    show(found)


class Killer:
    """Kills the primary of a random operator some random time after everything is as the controller wants it."""

    def __init__(self, kills: int, rng: random.Random) -> None:
        self.left, self.rng = kills, rng
        self.settled: list[dict[str, bool]] = []
        self._due: float | None = None
        self._victim: str | None = None

    def __call__(self, state: RunState, launcher: Launcher) -> None:
        operators = [one for one in state.slices if one.kind == "operator"]
        if not operators or not self._well(state, operators):
            self._due = None
            return
        if self._due is None:
            self._due = time.monotonic() + self.rng.uniform(3.0, 8.0)
        if time.monotonic() < self._due:
            return
        self._due = None
        if self.left == 0:
            launcher.finish()
            return
        self.left -= 1
        self._victim = self.rng.choice(operators).primary
        self.settled.append({one.slice: one.protection == one.scheme for one in operators})
        launcher.inject(f"kill:{self._victim}")

    def _well(self, state: RunState, operators: Sequence[SliceState]) -> bool:
        ready = sum(node.ready and node.connected for node in state.nodes) >= 3
        gone = self._victim is None or all(node.name != self._victim for node in state.nodes)
        going = all(one.state == "running" and one.lag <= 1 and one.protection == one.scheme for one in operators)
        return ready and gone and going and state.epoch >= 20


def measure(objective: float, shape: str, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    print(f"objective {objective:g} s, {shape} …", file=sys.stderr, flush=True)
    killer = Killer(arguments.kills, random.Random(seed))
    settings = {"objective": str(objective), "shape": shape, "rate": str(arguments.rate), "seed": str(seed)}
    with scratch() as home:
        report = run(APP, home, nodes=3, replace=True, fast=False, backlog=100, settings=settings, drive=killer)
    if report.verdict != "exact":
        raise SystemExit(f"{objective:g} s, {shape}: {report.verdict}: {report.failure}")
    one: dict[str, Any] = {
        "objective_s": objective,
        "shape": shape,
        "recoveries": recoveries(report, killer),
    }
    one |= {"shares": shares(report), "cpu": cpu_share(report), "transitions": len(report.transitions)}
    for recovery in one["recoveries"]:
        print(f"  {recovery}", file=sys.stderr, flush=True)
    print(f"  {one['shares']}, CPU {one['cpu']}", file=sys.stderr, flush=True)
    return one


def recoveries(report: Report, killer: Killer) -> list[dict[str, Any]]:
    found = []
    for fault, settled in zip(report.faults, killer.settled, strict=True):
        for one in fault.recoveries:
            if one.slice not in settled:
                continue
            predicted = None if one.predicted_s is None else round(sum(one.predicted_s.values()), 3)
            found.append(
                {
                    "slice": one.slice,
                    "scheme": one.scheme,
                    "settled": settled[one.slice],
                    "away_s": one.away_s,
                    "predicted_s": predicted,
                    "kept": one.missed is None,
                    "missed": one.missed,
                    "steps": {name: value for name, value in one.steps.items() if value >= 0.01},
                    "predicted_steps": {k: v for k, v in (one.predicted_s or {}).items() if abs(v) >= 0.01},
                }
            )
    return found


def shares(report: Report) -> dict[str, float]:
    """Time under the protection of each scheme, of all operators with an objective."""
    times = {scheme: sum(s.scheme_time_s.get(scheme, 0.0) for s in report.slices.values()) for scheme in LADDER}
    whole = sum(times.values())
    return {scheme: round(seconds / whole, 3) for scheme, seconds in times.items() if seconds > 0}


def cpu_share(report: Report) -> float:
    """CPU of secondaries over that of primaries, which is what always-active would cost."""
    costs = report.costs.schemes.values()
    return round(sum(one.cpu_s for one in costs) / max(1e-9, sum(one.primary_cpu_s for one in costs)), 3)


# -- without kills


class Recorder:
    """Writes down, once an epoch, what the manager knows of every slice."""

    def __init__(self, seconds: float) -> None:
        self._until = seconds
        self.lines: list[dict[str, Any]] = []
        self.moments: list[dict[str, Any]] = []
        self._seen: dict[str, int] = {}
        self._rows: dict[str, int] = {}

    def __call__(self, state: RunState, launcher: Launcher) -> None:
        if state.elapsed_s > self._until:
            launcher.finish()
        replicas = [r for node in state.nodes for r in node.replicas if r.primary]
        for one in state.slices:
            own = next((r for r in replicas if str(r.slice) == one.slice), None)
            if one.kind != "operator" or own is None or own.epoch <= self._seen.get(one.slice, -1):
                continue
            self._seen[one.slice] = own.epoch
            rows = own.rows_in - self._rows.get(one.slice, 0)
            self._rows[one.slice] = own.rows_in
            if own.epoch >= WARM:
                line = {"slice": one.slice, "epoch": own.epoch, "rows_in": rows, "state_bytes": own.state_bytes}
                self.lines.append(line | {"batch_s": own.batch_s})
            self.moments.append(
                {"at": state.elapsed_s, "slice": one.slice, "scheme": one.protection, "predicted": one.predicted_s}
                | {"rows": rows, "state_bytes": own.state_bytes}
            )


def watch_one(arguments: argparse.Namespace) -> None:
    objective = 2.0
    recorder = Recorder(arguments.seconds)
    settings = {"objective": str(objective), "shape": "messages", "rate": str(arguments.rate)}
    with scratch() as home:
        report = run(APP, home, nodes=3, fast=False, backlog=100, settings=settings, drive=recorder)
    print(f"{report.verdict}, {len(report.transitions)} transitions, {shares(report)}, CPU {cpu_share(report)}")
    for decision in report.decisions:
        print(f"  {decision.at_s:6.1f} s {decision.sentence}")
    if arguments.record:
        arguments.record.write_text("".join(json.dumps(line) + "\n" for line in recorder.lines))
    if arguments.evolution:
        draw(recorder.moments, objective, arguments.evolution)


def draw(moments: Sequence[dict[str, Any]], objective: float, path: Path) -> None:
    """Martin 2015, Fig. 7.4: load, predictions and the scheme in use, of one slice over time."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    own = [moment for moment in moments if moment["slice"] == "moods[0]"]
    at = [moment["at"] for moment in own]
    figure, (load, time_s, scheme) = plt.subplots(3, 1, figsize=(7.5, 6), sharex=True)
    load.plot(at, [moment["rows"] for moment in own], label="rows an epoch")
    load.set(ylabel="rows an epoch")
    for name in LADDER:
        values = [moment["predicted"].get(name) for moment in own]
        known = [(when, value) for when, value in zip(at, values, strict=True) if value is not None]
        if known:
            time_s.plot(*zip(*known, strict=True), label=name.replace("_", " "), linewidth=1)
    time_s.axhline(objective, color="black", linestyle=":", label="objective")
    time_s.set(ylabel="predicted, seconds")
    time_s.legend(fontsize=6, ncols=2)
    scheme.step(at, [LADDER.index(moment["scheme"]) for moment in own], where="post")
    scheme.set_yticks(range(len(LADDER)), [name.replace("_", " ") for name in LADDER], fontsize=7)
    scheme.set(xlabel="seconds")
    for axes in (load, time_s, scheme):
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


# -- showing


def show(found: Sequence[dict[str, Any]]) -> None:
    print(f"{'s':>4} {'shape':10} " + " ".join(f"{name:>5}" for name in HEAD) + "   CPU  moves  recoveries  broken")
    for one in found:
        parts = " ".join(f"{100 * one['shares'].get(scheme, 0.0):5.0f}" for scheme in reversed(LADDER))
        broken = sum(not r["kept"] for r in one["recoveries"])
        print(
            f"{one['objective_s']:4g} {one['shape']:10} {parts} {one['cpu']:5.2f} {one['transitions']:6} "
            f"{len(one['recoveries']):11} {broken:7}"
        )
    everything = [r | {"objective_s": one["objective_s"]} for one in found for r in one["recoveries"]]
    for miss in (r for r in everything if not r["kept"]):
        print(f"  broken by {miss['scheme']}: {miss['slice']} {miss['missed']}")
    predicted = [r for r in everything if r["predicted_s"] is not None]
    low = sum(r["predicted_s"] < 0.8 * r["away_s"] for r in predicted)
    ratios = [r["predicted_s"] / r["away_s"] for r in predicted if r["away_s"] > 0]
    settled = sum(not r["kept"] and r["settled"] for r in everything)
    print(
        f"{len(everything)} recoveries, {sum(not r['kept'] for r in everything)} promises broken, {settled} of them by "
        f"an established scheme; predictions below 80 % of what happened: {low} of {len(predicted)}; away at all: "
        f"{len(ratios)}, predicted over actual: median {statistics.median(ratios):.2f}, lowest {min(ratios):.2f}"
    )


if __name__ == "__main__":
    main()
