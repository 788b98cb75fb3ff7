"""What the controller saves, and whether it keeps its promises: simulated, without Spark.

python benchmarks/controller.py                     objectives of 0 to 20 s, both cost models, all load shapes' kills
python benchmarks/controller.py --figures docs/img  and the figures of docs/controller.md
python benchmarks/controller.py --trace FILE        the same on a recorded trace

The decisions are the real code; loads, step times and kills are simulated (simulate/controller_*.py).
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from understudy.control.schemes.objectives import Settings
from understudy.model.capabilities import LADDER
from understudy.model.costs import PRESETS
from understudy.model.recovery import Guarantee
from understudy.simulate.controller_figures import draw_costs, draw_evolution, draw_shares
from understudy.simulate.controller_result import Result, Study
from understudy.simulate.controller_run import simulate
from understudy.simulate.controller_trace import Trace, Workload, read_trace, synthetic
from understudy.sources.shapes import SHAPES

OBJECTIVES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0)
TITLES = {"everything": "everything counts", "pay-per-machine": "pay per machine"}
HEAD = ("AR", "AS", "hot", "cold", "depl", "PR")


def sweep(trace: Trace, study: Study) -> list[Result]:
    return [simulate(trace, replace(study, objective_s=objective)) for objective in OBJECTIVES]


def show(title: str, results: list[Result]) -> None:
    print(f"\n{title}: time in each scheme (%), costs against always-active, kills and broken promises")
    print(f"{'s':>5} " + " ".join(f"{name:>5}" for name in HEAD), end="  ")
    columns = {"CPU": 5, "mem": 5, "net": 5, "nodes": 5, "kills": 5, "broken": 6, "settled": 7, "low": 5, "moves": 6}
    print(" ".join(f"{name:>{width}}" for name, width in columns.items()))
    for result in results:
        shares = " ".join(f"{100 * result.shares[scheme]:5.1f}" for scheme in reversed(LADDER))
        costs = " ".join(f"{cost:5.2f}" for cost in result.costs.values())
        moves = result.changes / result.slices / result.seconds * 60
        print(
            f"{result.study.objective_s:5g} {shares}  {costs} {len(result.kills):5} {len(result.broken):6} "
            f"{len(result.broken_established):7} {result.shortfall:5.0%} {moves:6.2f}"
        )


def promises(slices: int, epochs: int, study: Study) -> None:
    """Kills at random moments across load shapes; every miss with its cause."""
    print(
        f"\n{study.kills} kills for each of {len(SHAPES)} shapes and each objective of 1, 2, 5, 20 s, seed {study.seed}"
    )
    total = broken = settled = 0
    ratios: list[float] = []
    for number, shape in enumerate(SHAPES):
        trace = synthetic(Workload(shape=shape), slices, epochs, study.seed + number)
        for objective in (1.0, 2.0, 5.0, 20.0):
            seed = study.seed + 100 * number + int(objective)
            result = simulate(trace, replace(study, objective_s=objective, seed=seed))
            ratios += [kill.ratio for kill in result.kills if kill.established and kill.actual_s > 0]
            total, broken = total + len(result.kills), broken + len(result.broken)
            settled += len(result.broken_established)
            for kill in result.broken:
                predicted = "unknown" if np.isnan(kill.predicted_s) else f"{kill.predicted_s:.2f} s"
                print(
                    f"  {shape}, {objective:g} s: {kill.slice} at {kill.at_s:.1f} s by {kill.scheme}: "
                    f"{kill.actual_s:.2f} s, predicted {predicted}: {kill.cause}"
                )
    low = sum(ratio < 0.8 for ratio in ratios)
    print(
        f"{total} kills: {broken} promises broken, {settled} of them by an established scheme; {low} of {len(ratios)} "
        f"predictions ({low / max(1, len(ratios)):.1%}) below 80 % of the actual time; predicted over actual: "
        f"median {median(ratios):.2f}, lowest {min(ratios):.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slices", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=240)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shape", default="messages", choices=sorted(SHAPES))
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--figures", type=Path, help="draw the figures into this folder")
    options = parser.parse_args()
    began = time.perf_counter()
    synthetic_trace = synthetic(Workload(shape=options.shape), options.slices, options.epochs, options.seed)
    trace = read_trace(options.trace) if options.trace else synthetic_trace
    study = Study(kills=options.kills, seed=options.seed)
    print(f"simulated; {trace.origin}; {len(trace.slices)} slices, {trace.epochs} epochs")
    by_costs = {}
    for name, costs in PRESETS.items():
        by_costs[TITLES[name]] = sweep(trace, replace(study, settings=Settings(costs=costs)))
        show(TITLES[name], by_costs[TITLES[name]])
    gap = sweep(trace, replace(study, guarantee=Guarantee.GAP))
    show("everything counts, gap instead of precise", gap)
    promises(options.slices, options.epochs // 2, study)
    rough = replace(study, machine=replace(study.machine, noise=3 * study.machine.noise))
    print(
        f"\nthe same with rougher steps: one in three is off by a factor of {np.exp(rough.machine.noise):.2f} or more"
    )
    promises(options.slices, options.epochs // 2, rough)
    if options.figures:
        precise = by_costs[TITLES["everything"]]
        draw_costs(by_costs, options.figures / "controller-costs.svg")
        draw_shares(by_costs, options.figures / "controller-schemes.svg")
        draw_shares({"precise": precise, "gap": gap}, options.figures / "controller-guarantees.svg")
        one = simulate(trace, replace(study, objective_s=5.5, kills=0))
        draw_evolution(one, options.figures / "controller-evolution.svg")
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
