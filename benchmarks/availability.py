"""How long availability planning and simulation take, and how the optimisers compare.

    python benchmarks/availability.py growth            one run of every step, 100 to 10,000 hosts
    python benchmarks/availability.py grid              the whole figure-4 grid on Spark
    python benchmarks/availability.py optimise          heuristics, genetic, local search, bound
    python benchmarks/availability.py wins              how often the searches win on small random problems

Run alone on the machine: anything beside it is in the numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from understudy.planning.availability.importance import rate
from understudy.planning.availability.optimise import Problem, optimise
from understudy.planning.availability.placement import PLACEMENT, place, uniform_cluster
from understudy.planning.availability.placement.first_fit import primaries
from understudy.planning.availability.plan import primary_hosts
from understudy.planning.availability.selection import SELECTION, select
from understudy.planning.availability.survival import availability, broken, draw_down
from understudy.simulate.availability.generator import generate
from understudy.simulate.availability.instances import random_problem
from understudy.simulate.availability.run import Experiment, Strategy

if TYPE_CHECKING:
    from collections.abc import Callable

Measured = dict[str, Any]


def timed(into: Measured, name: str, work: Callable[[], Any]) -> Any:
    clock = perf_counter()
    result = work()
    into[name] = round(perf_counter() - clock, 4)
    return result


def growth(hosts: int, seed: int) -> Measured:
    """Every step once at this size: load = hosts, spare = half of it, product heuristic."""
    rng = np.random.default_rng(seed)
    row: Measured = {"hosts": hosts}
    workload = timed(row, "generate", lambda: generate(float(hosts), rng))
    row |= {"queries": len(workload.queries), "operators": len(workload.operators)}
    cluster = uniform_cluster(round(1.9 * hosts), crash=0.02)
    homes = timed(row, "primaries", lambda: primaries(workload, cluster))
    primary = tuple(where[0] for where in homes.copies)
    rating = timed(row, "importance", lambda: rate("product", workload, rng))
    levels = {
        name: timed(row, f"select {name}", partial(select, name, workload, rating, hosts / 2)).levels
        for name in SELECTION
    }
    placed = {}
    for name in PLACEMENT:
        work = partial(place, name, workload, cluster, primary, levels["simple"], rating.operators)
        placed[name] = timed(row, f"place {name}", work)
    chosen = placed["first-fit"]
    exact = timed(row, "exact", lambda: availability(workload, cluster, chosen, rng))
    row["exact availability"] = round(exact.mean, 6)
    down = draw_down(cluster, 20, rng)
    timed(row, "20 trials", lambda: broken(workload, chosen.matrix(), down))
    return row


def grid(runs: int, seed: int) -> Measured:
    """Five heuristics, five probabilities; Spark's start is outside the clock, its workers' start inside."""
    from understudy.simulate.availability.job import run_job
    from understudy.simulate.availability.session import session
    from understudy.simulate.availability.summary import summarise

    spark = session()
    names = ("random", "out-degree", "low-utilisation", "product")
    experiment = Experiment((*(Strategy(name) for name in names), Strategy("product", 100.0)), seed=seed)
    row: Measured = {"runs": runs, "load average before": round(os.getloadavg()[0], 2)}
    before = cpu_seconds()
    with tempfile.TemporaryDirectory() as folder:
        timed(row, "seconds", lambda: run_job(spark, experiment, runs, Path(folder) / "rows"))
        points = summarise(Path(folder) / "rows")
    row["cpu seconds"] = round(cpu_seconds() - before, 1)
    row["load average after"] = round(os.getloadavg()[0], 2)
    row["points"] = len(points)
    spark.stop()
    return row


def cpu_seconds() -> float:
    """CPU time of this process, the JVM and its Python workers: unlike the clock, little moved by others."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return float(sum(time.user + time.system for time in times))


def contest(problem: Problem, label: str, seed: int, rounds: int, generations: int) -> list[Measured]:
    compared = optimise(problem, seed, rounds, generations)
    limit = compared.bound.value if compared.bound is not None and not compared.bound.unreachable else None
    return [
        {
            "problem": label,
            "method": answer.method,
            "status": answer.status.value,
            "availability": round(answer.availability, 6),
            "cost": round(answer.cost, 4),
            "bound": None if limit is None else round(limit, 6),
            "seconds": round(answer.seconds, 2),
        }
        for answer in compared.answers
    ]


def optimisers(seed: int, largest: int) -> list[Measured]:
    rows: list[Measured] = []
    for load in (10, 30, 100):
        if load > largest:
            break
        workload = generate(float(load), np.random.default_rng(seed))
        cluster = uniform_cluster(2 * load, crash=0.02)
        primary = primary_hosts(workload, cluster)
        for goal in ({"cost_limit": load / 2}, {"target": 0.99}):
            problem = Problem(workload, cluster, primary, goal.get("cost_limit"), goal.get("target"))
            rows += contest(problem, f"{load} hosts, {len(workload.operators)} operators, {goal}", seed, 10, 30)
    return rows


def wins(instances: int) -> Measured:
    """On random small problems: how often each search is the best, and how often it is proven so."""
    count: Measured = {"instances": 0, "genetic better": 0, "local better": 0, "worse": 0, "proven": 0}
    for seed in range(instances):
        for least_cost in (False, True):
            problem = random_problem(seed, 10, 6, 6, least_cost)
            compared = optimise(problem, seed, rounds=20, generations=30)
            heuristic, genetic, local = (problem.rank(a.availability, a.cost)[:2] for a in compared.answers[:3])
            count["instances"] += 1
            count["genetic better"] += genetic > heuristic
            count["local better"] += local > heuristic
            count["worse"] += min(genetic, local) < heuristic
            count["proven"] += compared.best.status.value == "optimal"
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["growth", "grid", "optimise", "wins"])
    parser.add_argument("--hosts", type=int, nargs="+", default=[100, 300, 1000, 3000, 10_000])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--largest", type=int, default=100)
    parser.add_argument("--instances", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.what == "growth":
        for hosts in given.hosts:
            print(json.dumps(growth(hosts, given.seed)), flush=True)
    elif given.what == "grid":
        print(json.dumps(grid(given.runs, given.seed)))
    elif given.what == "wins":
        print(json.dumps(wins(given.instances)))
    else:
        for row in optimisers(given.seed, given.largest):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
