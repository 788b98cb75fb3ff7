"""Random planning problems of any size, without the structure of real queries: for tests and benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.errors import InvalidInput
from understudy.planning.availability.optimise import Problem
from understudy.planning.availability.placement import Cluster, Host, cluster_of
from understudy.planning.availability.plan import primary_hosts
from understudy.planning.availability.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Sequence


def workload(
    load: Sequence[float], queries: Sequence[Sequence[int]], edges: Sequence[tuple[int, int]] = ()
) -> Workload:
    """Operators with these loads, no network traffic, queries by operator number."""
    return Workload(
        operators=tuple(f"o{number}" for number in range(len(load))),
        load=np.array(load, dtype=np.float64),
        net_in=np.zeros(len(load)),
        net_out=np.zeros(len(load)),
        queries=tuple(f"q{number}" for number in range(len(queries))),
        offsets=np.cumsum([0, *(len(query) for query in queries)], dtype=np.int64),
        members=np.array([operator for query in queries for operator in query], dtype=np.int64),
        edges=np.array(edges, dtype=np.int64).reshape(-1, 2),
    )


def random_workload(rng: np.random.Generator, operators: int, queries: int, largest: float = 0.5) -> Workload:
    load = rng.uniform(0.05, largest, operators).tolist()
    members = [
        sorted(rng.choice(operators, size=int(rng.integers(1, min(operators, 4) + 1)), replace=False).tolist())
        for _ in range(queries)
    ]
    return workload(load, members, [(number, number + 1) for number in range(operators - 1)])


def random_cluster(rng: np.random.Generator, hosts: int) -> Cluster:
    """Some hosts share a domain, some domains fail as a whole, some hosts are dearer."""
    made = [
        Host(
            f"h{number}",
            cpu=float(rng.uniform(0.8, 2.0)),
            domain=(None, "a", "b")[int(rng.integers(3))],
            crash=float(rng.choice([0.01, 0.05, 0.2])),
            price=float(rng.choice([1.0, 2.0])),
        )
        for number in range(hosts)
    ]
    domains = sorted({host.domain for host in made if host.domain is not None})
    return cluster_of(made, {domain: 0.02 for domain in domains if rng.random() < 0.5})


def random_problem(seed: int, operators: int, queries: int, hosts: int, least_cost: bool) -> Problem:
    """The first problem from this seed on whose primaries fit."""
    for attempt in range(100):
        rng = np.random.default_rng([seed, attempt])
        made = random_workload(rng, operators, queries)
        cluster = random_cluster(rng, hosts)
        try:
            primary = primary_hosts(made, cluster)
        except InvalidInput:
            continue
        if least_cost:
            return Problem(made, cluster, primary, target=float(rng.uniform(0.85, 0.999)))
        return Problem(made, cluster, primary, cost_limit=float(rng.uniform(0.0, 0.7) * made.total_load))
    raise InvalidInput(
        f"no problem with {operators} operators on {hosts} hosts was found",
        why="the primaries never fit",
        fix="ask for more hosts",
    )
