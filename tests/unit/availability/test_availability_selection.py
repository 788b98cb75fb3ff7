from __future__ import annotations

import numpy as np
import pytest

from understudy.errors import InvalidInput
from understudy.planning.availability.importance import IMPORTANCE, Rating, rate
from understudy.planning.availability.selection import SELECTION, select
from understudy.planning.availability.selection.exact import knapsack
from understudy.planning.status import Status
from understudy.simulate.availability.instances import random_workload, workload

RNG = np.random.default_rng(1)


def test_importance_of_the_paper() -> None:
    made = workload([0.1, 0.4, 0.2], [[0, 1], [0, 2]])
    assert rate("out-degree", made, RNG).operators.tolist() == [1.0, 0.5, 0.5]
    assert rate("low-utilisation", made, RNG).operators.tolist() == pytest.approx([0.75, 0.0, 0.5])
    assert rate("product", made, RNG).operators.tolist() == pytest.approx([0.75, 0.0, 0.25])


def test_query_importance_is_the_mean_of_its_operators() -> None:
    made = workload([0.1, 0.4, 0.2], [[0, 1], [0, 2]])
    rating = rate("query-product", made, RNG)
    assert rating.queries is not None
    assert rating.queries.tolist() == pytest.approx([0.375, 0.5])
    assert rating.operators.tolist() == pytest.approx([0.5, 0.375, 0.5])


def test_unknown_names_say_what_there_is() -> None:
    made = workload([0.1], [[0]])
    with pytest.raises(InvalidInput) as caught:
        rate("nice", made, RNG)
    assert all(name in caught.value.fix for name in IMPORTANCE)
    with pytest.raises(InvalidInput) as caught:
        select("nice", made, Rating(np.ones(1)), 1.0)
    assert all(name in caught.value.fix for name in SELECTION)
    with pytest.raises(InvalidInput, match="level 0"):
        select("simple", made, Rating(np.ones(1)), 1.0, 0)


def test_simple_gives_everyone_one_before_anyone_gets_two() -> None:
    made = workload([0.5, 0.5, 0.5], [[0, 1, 2]])
    rating = Rating(np.array([0.9, 0.5, 0.1]))
    assert select("simple", made, rating, 1.0, 2).levels.tolist() == [1, 1, 0]
    assert select("simple", made, rating, 2.0, 2).levels.tolist() == [2, 1, 1]
    assert select("at-once", made, rating, 2.0, 2).levels.tolist() == [2, 2, 0]


def test_what_does_not_fit_is_passed_over() -> None:
    made = workload([0.2, 0.9, 0.3], [[0, 1, 2]])
    chosen = select("simple", made, Rating(np.array([0.9, 0.5, 0.1])), 0.6)
    assert chosen.levels.tolist() == [1, 0, 1]
    assert chosen.used == pytest.approx(0.5)
    assert chosen.share == pytest.approx(2 / 3)


def test_query_level_protects_whole_queries_and_then_single_operators() -> None:
    # By operators 0 and 2 would be taken; by queries 0 and 1 belong together.
    made = workload([0.4, 0.4, 0.2, 0.4], [[0, 1], [2, 3]])
    rating = Rating(np.array([0.5, 0.5, 0.4, 0.4]), np.array([0.5, 0.4]))
    assert select("simple", made, rating, 0.8).levels.tolist() == [1, 1, 0, 0]
    assert select("simple", made, rating, 1.0).levels.tolist() == [1, 1, 1, 0]


def test_the_knapsack_beats_the_greedy_rule_where_it_is_blind() -> None:
    value, weight = np.array([0.6, 0.5, 0.5]), np.array([0.5, 0.5, 0.5]) + np.array([0.0, 0.001, 0.001])
    made = workload((weight * [1.02, 1.0, 1.0]).tolist(), [[0, 1, 2]])
    exact = select("exact", made, Rating(value), 1.003)
    assert exact.status is Status.OPTIMAL
    assert exact.levels.tolist() == [0, 1, 1]
    assert select("density", made, Rating(value), 1.003).levels.tolist() == [1, 0, 0]


def test_the_knapsack_says_when_it_is_not_proven() -> None:
    rng = np.random.default_rng(3)
    weight = rng.uniform(0.1, 1.0, 60)
    value = weight + 0.1  # strongly correlated: the hard kind
    taken, proven = knapsack(value, weight, 12.345, max_pairs=5)
    assert not proven
    assert weight[taken].sum() <= 12.345 + 1e-9
    _, proven = knapsack(rng.random(60), weight, 12.345)
    assert proven, "values of their own are the easy kind"


@pytest.mark.parametrize("name", SELECTION)
@pytest.mark.parametrize("level", [1, 3])
def test_every_selection_keeps_the_spare_load_and_its_input(name: str, level: int) -> None:
    for seed in range(10):
        made = random_workload(np.random.default_rng(seed), 12, 6)
        rating = rate("product", made, np.random.default_rng(seed))
        before = rating.operators.copy()
        chosen = select(name, made, rating, 2.0, level)
        assert chosen.used == pytest.approx(float(chosen.levels @ made.load)), f"seed {seed}"
        assert chosen.used <= 2.0 + 1e-6
        assert 0 <= chosen.levels.min() <= chosen.levels.max() <= level
        assert rating.operators.tolist() == before.tolist()
        assert select(name, made, rating, 2.0, level).levels.tolist() == chosen.levels.tolist()
