from __future__ import annotations

import numpy as np
import pytest

from understudy.planning.availability.placement import Host, Placed, cluster_of, uniform_cluster
from understudy.planning.availability.survival import Survival, TooHard, availability, broken, estimate
from understudy.planning.availability.survival.monte_carlo import wilson
from understudy.simulate.availability.instances import workload

RNG = np.random.default_rng(1)


def test_a_query_needs_all_its_bare_hosts() -> None:
    survival = Survival(uniform_cluster(3, crash=0.1))
    assert survival.query([(0,), (1,), (0,)]) == pytest.approx(0.81)


def test_a_replica_is_a_second_chance() -> None:
    survival = Survival(uniform_cluster(3, crash=0.1))
    assert survival.query([(0, 1)]) == pytest.approx(0.99)
    assert survival.query([(0, 1), (0, 2)]) == pytest.approx(0.9 + 0.1 * 0.81)
    assert survival.query([(0, 1), (0,)]) == pytest.approx(0.9), "the bare host decides alone"


def test_a_domain_takes_both_copies() -> None:
    cluster = cluster_of([Host("a", domain="x", crash=0.1), Host("b", domain="x", crash=0.1)], {"x": 0.05})
    assert Survival(cluster).query([(0, 1)]) == pytest.approx(0.95 * 0.99)


def test_no_operator_and_no_copy() -> None:
    survival = Survival(uniform_cluster(1, crash=0.1))
    assert survival.query([]) == 1.0
    assert survival.query([()]) == 0.0


def test_entangled_queries_are_sampled_with_an_interval() -> None:
    rng = np.random.default_rng(5)
    pairs = [tuple(rng.choice(12, 2, replace=False).tolist()) for _ in range(16)]
    made = workload([0.1] * 16, [list(range(16)), [0]])
    cluster = uniform_cluster(12, 9.0, crash=0.05)
    with pytest.raises(TooHard):
        Survival(cluster, steps=3).query(pairs)
    exact = availability(made, cluster, Placed(tuple(pairs)), RNG)
    assert exact.exact
    sampled = availability(made, cluster, Placed(tuple(pairs)), RNG, steps=3)
    assert not sampled.exact
    assert sampled.low[0] <= exact.queries[0] <= sampled.high[0]
    assert sampled.low[1] == sampled.high[1] == exact.queries[1]


def test_sampling_agrees_with_the_exact_mean() -> None:
    made = workload([0.1] * 4, [[0, 1], [1, 2, 3]])
    cluster = cluster_of([Host(f"h{n}", crash=0.1, domain="xy"[n % 2]) for n in range(4)], {"x": 0.05})
    placed = Placed(((0, 1), (1, 2), (2,), (3, 0)))
    exact = availability(made, cluster, placed, RNG)
    sampled = estimate(made, cluster, placed, 40_000, np.random.default_rng(2))
    assert abs(sampled.mean - exact.mean) <= sampled.half
    assert np.all((sampled.low <= exact.queries) & (exact.queries <= sampled.high))


def test_broken_is_a_query_with_an_operator_without_copies() -> None:
    made = workload([0.1] * 3, [[0, 1], [2]])
    copies = Placed(((0, 1), (1,), (2,))).matrix()
    down = np.array([[True, False, False], [False, True, False], [False, False, True], [False, False, False]])
    assert broken(made, copies, down).tolist() == [
        [False, False],
        [True, False],
        [False, True],
        [False, False],
    ]


def test_wilson_is_not_certain_after_only_successes() -> None:
    low, high = wilson(np.array([100.0, 0.0]), 100)
    assert (round(float(low[0]), 4), float(high[0])) == (0.963, 1.0)
    assert (round(float(low[1]), 4), round(float(high[1]), 4)) == (0.0, 0.037)
