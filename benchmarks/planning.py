"""How fast the exact planner is, and how close the others come.

python benchmarks/planning.py            targets and time against size
python benchmarks/planning.py --study    mean fidelity over 100 random topologies per specification
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.metrics import Metrics
from understudy.planning.replication.plan import PlanRequest, ReplicationPlan
from understudy.planning.replication.registry import planner
from understudy.planning.replication.validator import problems_with
from understudy.simulate.replication_study import PANELS, Study, run
from understudy.simulate.topologies import TopologySpec, random_topology

if TYPE_CHECKING:
    from understudy.planning.replication.problem import ReplicationProblem

TEN = TopologySpec(operators=(10, 10), skew=0.1)
STRUCTURED = replace(TEN, kind="structured")
CHAIN = replace(TEN, kind="full", shape="chain")
MIXED = replace(TEN, kind="mixed")
JOINS = replace(TEN, kind="mixed", joins=0.5)

# name, specification, budget, seconds allowed
TARGETS = [
    ("structured", replace(STRUCTURED, tasks=1200), 0.2, 10.0),
    ("structured", replace(STRUCTURED, tasks=1200), 0.5, 10.0),
    ("full chain", replace(CHAIN, tasks=1200), 0.2, 2.0),
    ("full chain", replace(CHAIN, tasks=1200), 0.5, 2.0),
    ("mixed", replace(MIXED, tasks=600), 0.2, 20.0),
    ("mixed", replace(MIXED, tasks=600), 0.5, 20.0),
    ("half joins", replace(JOINS, tasks=100), 0.2, 60.0),
    ("half joins", replace(JOINS, tasks=100), 0.5, 60.0),
    ("half joins, structured", replace(JOINS, tasks=100, kind="structured"), 0.2, 60.0),
    ("half joins, structured", replace(JOINS, tasks=100, kind="structured"), 0.5, 60.0),
]
SIZES = {
    "structured": (STRUCTURED, (100, 300, 600, 1200, 2400)),
    "full chain": (CHAIN, (100, 300, 600, 1200, 2400)),
    "mixed": (MIXED, (50, 100, 200, 400, 600)),
    "half joins": (JOINS, (40, 60, 80, 100)),
}


def solve(problem: ReplicationProblem, ratio: float, limit: float) -> ReplicationPlan:
    plan = planner("exact")(PlanRequest(problem, int(ratio * problem.task_count), time_limit_s=limit))
    wrong = problems_with(problem, plan)
    if wrong:
        raise SystemExit(f"a plan is broken: {wrong}")
    return plan


def gap(plan: ReplicationPlan) -> float:
    return (plan.upper_bound - plan.value) / plan.value if plan.value else float(plan.upper_bound > 0)


def targets(seeds: int) -> None:
    print(
        f"{'topology':24} {'tasks':>5} {'budget':>6} {'seed':>4} {'status':>9} {'gap':>8} {'seconds':>8} {'limit':>6}"
    )
    for name, spec, ratio, limit in TARGETS:
        for seed in range(seeds):
            plan = solve(random_topology(spec, seed), ratio, limit)
            print(
                f"{name:24} {spec.tasks:5} {ratio:6.0%} {seed:4} {plan.status:>9} {gap(plan):8.2%} "
                f"{plan.seconds:8.2f} {limit:6.0f}",
                flush=True,
            )


def sizes(seeds: int, limit: float) -> None:
    print(f"\ntime against size, budget 30 %, median of {seeds} seeds, limit {limit:.0f} s")
    print(f"{'topology':24} {'tasks':>5} {'optimal':>8} {'seconds':>8} {'worst':>8}")
    for name, (spec, counts) in SIZES.items():
        for count in counts:
            plans = [solve(random_topology(replace(spec, tasks=count), s), 0.3, limit) for s in range(seeds)]
            taken = sorted(plan.seconds for plan in plans)
            proven = sum(plan.status == "optimal" for plan in plans)
            print(
                f"{name:24} {count:5} {proven:5}/{seeds:<2} {np.median(taken):8.2f} {taken[-1]:8.2f}",
                flush=True,
            )


def evaluation() -> None:
    print("\none evaluation of fidelity, 10,000 tasks in 10 operators")
    for name, spec in (("structured", STRUCTURED), ("full chain", CHAIN), ("mixed, half joins", JOINS)):
        problem = random_topology(replace(spec, tasks=10_000), seed=0)
        metrics = Metrics(problem)
        alive = np.random.default_rng(0).random(10_000) < 0.9
        metrics.output_fidelity(alive)
        start = time.perf_counter()
        for _ in range(20):
            metrics.output_fidelity(alive)
        print(f"{name:24} {(time.perf_counter() - start) / 20 * 1000:8.2f} ms")


def study(topologies: int, limit: float, ratios: tuple[float, ...]) -> None:
    specs = {f"{panel} {name}": spec for panel, group in PANELS.items() for name, spec in group.items()}
    distinct = {spec: name for name, spec in reversed(specs.items())}
    chosen = Study(
        topologies=topologies,
        ratios=ratios,
        time_limit_s=limit,
        algorithms=("exact", "structure-aware", "greedy", "random"),
    )
    print(f"mean output fidelity over {topologies} topologies and {len(chosen.ratios)} budgets each")
    print(
        f"{'specification':30} {'exact':>7} {'s-aware':>8} {'greedy':>7} {'random':>7} {'s-a/exact':>9} {'proven':>7}"
    )
    for spec, name in distinct.items():
        rows = run(chosen, {name: spec})
        mean = {a: float(np.mean([r.fidelity for r in rows if r.algorithm == a])) for a in chosen.algorithms}
        proven = sum(r.proven for r in rows if r.algorithm == "exact")
        total = sum(r.runs for r in rows if r.algorithm == "exact")
        print(
            f"{name:30} {mean['exact']:7.4f} {mean['structure-aware']:8.4f} {mean['greedy']:7.4f} "
            f"{mean['random']:7.4f} {mean['structure-aware'] / mean['exact']:9.1%} {proven:4}/{total}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--study", action="store_true")
    parser.add_argument("--topologies", type=int, default=100)
    parser.add_argument("--limit", type=float, default=1.0, help="seconds per plan in --study")
    parser.add_argument("--budgets", type=float, nargs="+", default=[0.2, 0.4, 0.6], help="in --study")
    options = parser.parse_args()
    if options.study:
        study(options.topologies, options.limit, tuple(options.budgets))
    else:
        evaluation()
        targets(options.seeds)
        sizes(options.seeds, 20.0)


if __name__ == "__main__":
    main()
