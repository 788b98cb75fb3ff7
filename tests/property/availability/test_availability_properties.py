from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.planning.availability.importance import IMPORTANCE, Rating, rate
from understudy.planning.availability.placement import (
    Host,
    cluster_of,
    coloured,
    interleaved,
    uniform_cluster,
)
from understudy.planning.availability.placement.validate import violations
from understudy.planning.availability.query import Operator, OperatorType, Query
from understudy.planning.availability.selection import select
from understudy.planning.availability.sharing import SharedGraph
from understudy.planning.availability.survival import Survival
from understudy.planning.availability.workload import Workload, workload_of
from understudy.simulate.availability.instances import random_workload, workload

SEEDS = st.integers(0, 10_000)
LOADS = st.lists(st.floats(0.0, 1.0, allow_subnormal=False), min_size=1, max_size=12)


@given(data=st.data(), load=LOADS, spare=st.floats(0.0, 6.0))
def test_the_exact_knapsack_is_never_worse_than_the_density_rule(
    data: st.DataObject, load: list[float], spare: float
) -> None:
    value = np.array(data.draw(st.lists(st.floats(0.0, 1.0), min_size=len(load), max_size=len(load))))
    made = workload(load, [list(range(len(load)))])
    exact = select("exact", made, Rating(value), spare)
    dense = select("density", made, Rating(value), spare)
    assert exact.levels @ value >= dense.levels @ value - 1e-12
    assert exact.levels @ made.load <= spare + 1e-6


@given(load=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=9), seed=SEEDS, spare=st.floats(0.0, 4.0))
@settings(max_examples=60)
def test_the_exact_knapsack_is_the_best_of_all_sets(load: list[float], seed: int, spare: float) -> None:
    value = np.random.default_rng(seed).random(len(load))
    made = workload(load, [list(range(len(load)))])
    sets = np.array(list(product([0, 1], repeat=len(load))))
    best = (sets @ value)[sets @ made.load <= spare + 1e-9].max()
    assert select("exact", made, Rating(value), spare).levels @ value == pytest.approx(best)


@pytest.mark.parametrize("name", IMPORTANCE)
@given(seed=SEEDS, operators=st.integers(1, 12), queries=st.integers(1, 8))
@settings(max_examples=25)
def test_importance_is_between_zero_and_one(name: str, seed: int, operators: int, queries: int) -> None:
    made = random_workload(np.random.default_rng(seed), operators, queries)
    rating = rate(name, made, np.random.default_rng(seed))
    for values in (rating.operators, rating.queries):
        if values is not None:
            assert values.min() >= 0.0
            assert values.max() <= 1.0


def enumerated(copies: list[tuple[int, ...]], hosts: list[Host], domains: dict[str, float]) -> float:
    """Every combination of fallen hosts and fallen domains, one by one."""
    names = sorted(domains)
    total = 0.0
    for fallen in product([False, True], repeat=len(names)):
        gone = {name for name, down in zip(names, fallen, strict=True) if down}
        weight = float(np.prod([domains[n] if n in gone else 1 - domains[n] for n in names]))
        for own in product([False, True], repeat=len(hosts)):
            chance = float(np.prod([h.crash if down else 1 - h.crash for h, down in zip(hosts, own, strict=True)]))
            up = [not down and host.domain not in gone for host, down in zip(hosts, own, strict=True)]
            if all(any(up[host] for host in where) for where in copies):
                total += weight * chance
    return total


@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_exact_survival_equals_the_enumeration_of_all_failures(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    chance = st.sampled_from([0.0, 0.02, 0.3, 1.0])
    hosts = [
        Host(f"h{n}", domain=data.draw(st.sampled_from([None, "x", "y"])), crash=data.draw(chance))
        for n in range(count)
    ]
    used = sorted({host.domain for host in hosts if host.domain is not None})
    domains = {name: data.draw(st.sampled_from([0.0, 0.1, 0.5])) for name in used}
    where = st.lists(st.integers(0, count - 1), min_size=1, max_size=3, unique=True).map(tuple)
    copies = data.draw(st.lists(where, min_size=0, max_size=7))
    survival = Survival(cluster_of(hosts, domains))
    assert survival.query(copies) == pytest.approx(enumerated(copies, hosts, domains), abs=1e-12)


@given(data=st.data(), hosts=st.integers(2, 8), slices=st.integers(1, 24))
@settings(max_examples=60)
def test_interleaving_shares_a_dead_hosts_load_equally_to_within_one_slice(
    data: st.DataObject, hosts: int, slices: int
) -> None:
    load = data.draw(st.lists(st.floats(0.01, 0.5), min_size=slices, max_size=slices))
    primary = tuple(data.draw(st.lists(st.integers(0, hosts - 1), min_size=slices, max_size=slices)))
    made = workload(load, [list(range(slices))])
    ones = np.ones(slices, dtype=np.int64)
    placed = interleaved.place(made, uniform_cluster(hosts, 1000.0), primary, ones, np.ones(slices))
    assert not placed.unplaced
    for dead in range(hosts):
        orphans = [slice_ for slice_ in range(slices) if primary[slice_] == dead]
        share = np.zeros(hosts)
        for slice_ in orphans:
            share[placed.copies[slice_][1]] += load[slice_]
        others = np.delete(share, dead)
        assert share[dead] == 0.0
        assert others.max() - others.min() <= max((load[s] for s in orphans), default=0.0) + 1e-9


@given(seed=SEEDS, hosts=st.integers(2, 4), count=st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_colours_are_never_raised_without_need(seed: int, hosts: int, count: int) -> None:
    """c equals the smallest that any packing at all can have."""
    rng = np.random.default_rng(seed)
    made = workload(rng.uniform(0.1, 0.6, count).tolist(), [list(range(count))])
    primary = tuple(rng.integers(0, hosts, count).tolist())
    cluster = uniform_cluster(hosts, 1.2)
    if violations(made, cluster, tuple((host,) for host in primary)):
        return
    best: int | None = None
    for replicas in product(range(hosts), repeat=count):
        copies = tuple(zip(primary, replicas, strict=True))
        if not violations(made, cluster, copies):
            most = int(np.bincount(replicas).max())
            best = most if best is None else min(best, most)
    placed = coloured.place(made, cluster, primary, np.ones(count, dtype=np.int64), rng.random(count))
    assert (placed.colours if not placed.unplaced else None) == best
    if best is not None:
        assert placed.proven


KINDS = st.sampled_from(["p", "q"])


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """A chain over one of two streams, with predicates from a small pool so that sharing happens."""
    name = f"q{draw(st.integers(0, 5))}"
    operators = [Operator("s", OperatorType.SOURCE, predicate=draw(KINDS), rate=10.0, cost=0.01)]
    for depth in range(draw(st.integers(0, 3))):
        previous = operators[-1].name
        operators.append(Operator(f"f{depth}", OperatorType.FILTER, (previous,), draw(KINDS), 0.5, 0.01))
    operators.append(Operator("d", OperatorType.DESTINATION, (operators[-1].name,), name, cost=0.01))
    return Query(name, tuple(operators))


@given(changes=st.lists(queries(), max_size=12))
def test_queries_that_come_and_go_leave_the_graph_of_those_that_stay(changes: list[Query]) -> None:
    """Adding and removing in any order ends in what building the remaining queries afresh gives."""
    graph = SharedGraph()
    running: dict[str, Query] = {}
    for query in changes:
        if query.name in running:
            graph.remove(query.name)
            del running[query.name]
        else:
            graph.add(query)
            running[query.name] = query
    fresh = workload_of(SharedGraph(running.values()))
    kept = workload_of(graph)
    assert set(kept.queries) == set(fresh.queries)
    assert len(set(kept.operators)) == len(kept.operators) == len(fresh.operators)
    assert kept.total_load == pytest.approx(fresh.total_load)
    assert _loads(kept) == _loads(fresh)


def _loads(made: Workload) -> dict[str, list[float]]:
    return {
        name: sorted(round(float(made.load[o]), 9) for o in operators)
        for name, operators in zip(made.queries, made.by_query, strict=True)
    }
