"""Numbers that Su and Zhou 2016 state, or that follow from their paper by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from understudy.planning.replication.files import parse
from understudy.planning.replication.mc_trees import count, enumerate_trees
from understudy.planning.replication.metrics import Metrics
from understudy.planning.replication.plan import PlanRequest
from understudy.planning.replication.registry import planner
from understudy.planning.replication.structure import sub_topologies, units
from understudy.planning.status import Status

if TYPE_CHECKING:
    from understudy.planning.replication.problem import ReplicationProblem


def _two_into_one(kind: str) -> ReplicationProblem:
    return parse(
        {
            "operators": [
                {"name": "O1", "tasks": [1, 2]},
                {"name": "O2", "tasks": [3, 2]},
                {"name": "O3", "tasks": [4.0], "input": kind},
            ],
            "streams": [
                {"from": "O1", "to": "O3", "partitioning": "merge"},
                {"from": "O2", "to": "O3", "partitioning": "merge"},
            ],
        }
    )


def _figure_1(kind: str) -> ReplicationProblem:
    return parse(
        {
            "operators": [
                {"name": "O1", "tasks": [1] * 2},
                {"name": "O2", "tasks": [1] * 2},
                {"name": "O3", "tasks": [1] * 4, "input": kind},
                {"name": "O4", "tasks": [1] * 2},
            ],
            "streams": [
                {"from": "O1", "to": "O3", "partitioning": "split"},
                {"from": "O2", "to": "O3", "partitioning": "split"},
                {"from": "O3", "to": "O4", "partitioning": "full"},
            ],
        }
    )


@pytest.mark.parametrize(("kind", "loss"), [("correlated", 2 / 5), ("independent", 1 / 4)])
def test_loss_of_a_join_and_of_a_union(kind: str, loss: float) -> None:
    problem = _two_into_one(kind)
    metrics = Metrics(problem)
    alive = ~metrics.alive(problem.numbers(["O2[1]"]))
    assert 1 - metrics.task_fidelity(alive)[problem.task_numbers["O3[0]"]] == pytest.approx(loss)
    assert metrics.output_fidelity(alive) == pytest.approx(1 - loss)


def test_completeness_counts_rows_and_ignores_that_a_join_needs_both_sides() -> None:
    problem = _two_into_one("correlated")
    metrics = Metrics(problem)
    # Sources process 1 + 2 + 3 + 2 rows, the join 8; without O2[1] both lose 2 of them.
    assert metrics.internal_completeness(~metrics.alive([3])) == pytest.approx(12 / 16)


@pytest.mark.parametrize(("kind", "trees"), [("independent", 16), ("correlated", 8)])
def test_trees_of_figure_1(kind: str, trees: int) -> None:
    problem = _figure_1(kind)
    assert count(problem) == trees
    assert len(set(enumerate_trees(problem))) == trees


def test_trees_are_counted_beyond_any_enumeration() -> None:
    operators = [{"name": f"O{i}", "tasks": [1.0] * 50} for i in range(40)]
    streams = [{"from": f"O{i}", "to": f"O{i + 1}", "partitioning": "full"} for i in range(39)]
    problem = parse({"operators": operators, "streams": streams})
    assert count(problem) == 50**40
    assert len(next(enumerate_trees(problem))) == 40


def test_a_silent_stream_still_has_a_loss() -> None:
    problem = parse(
        {
            "operators": [{"name": "A", "tasks": [0, 0]}, {"name": "B", "tasks": [0]}],
            "streams": [{"from": "A", "to": "B", "partitioning": "merge"}],
        }
    )
    metrics = Metrics(problem)
    assert metrics.output_fidelity([True, False, True]) == pytest.approx(0.5)
    assert metrics.output_fidelity([True, True, True]) == pytest.approx(1.0)


def test_greedy_wastes_its_budget_where_structure_aware_does_not() -> None:
    """Three replicas: one per level makes a tree; all three on the first level make none."""
    problem = parse(
        {
            "operators": [{"name": name, "tasks": [3, 2, 2, 2]} for name in ("in", "mid", "out")],
            "streams": [
                {"from": "in", "to": "mid", "partitioning": "one-to-one"},
                {"from": "mid", "to": "out", "partitioning": "one-to-one"},
            ],
        }
    )
    plans = {name: planner(name)(PlanRequest(problem, 4)) for name in ("exact", "structure-aware", "greedy")}
    assert plans["exact"].replicas == ("in[0]", "mid[0]", "out[0]")
    assert plans["structure-aware"].replicas == plans["exact"].replicas
    assert plans["exact"].output_fidelity == pytest.approx(1 / 3)
    assert planner("greedy")(PlanRequest(problem, 2)).output_fidelity == 0


def test_a_full_chain_is_solved_by_sorting() -> None:
    rng = np.random.default_rng(5)
    rates = [rng.uniform(1, 5, 30).tolist() for _ in range(3)]
    problem = parse(
        {
            "operators": [{"name": f"O{i}", "tasks": r} for i, r in enumerate(rates)],
            "streams": [{"from": f"O{i}", "to": f"O{i + 1}", "partitioning": "full"} for i in range(2)],
        }
    )
    tops = [np.concatenate(([0.0], np.cumsum(sorted(r, reverse=True)) / sum(r))) for r in rates]
    best = max(tops[0][a] * tops[1][b] * tops[2][20 - a - b] for a in range(21) for b in range(21 - a))
    plan = planner("exact")(PlanRequest(problem, 20))
    assert plan.status is Status.OPTIMAL
    assert plan.output_fidelity == pytest.approx(best)


def test_a_topology_is_cut_at_full_streams_and_units_at_merges_before_splits() -> None:
    problem = parse(
        {
            "operators": [
                {"name": "A", "tasks": [1] * 4},
                {"name": "B", "tasks": [1] * 2},
                {"name": "C", "tasks": [1] * 4},
                {"name": "D", "tasks": [1] * 3},
                {"name": "E", "tasks": [1] * 3},
            ],
            "streams": [
                {"from": "A", "to": "B", "partitioning": "merge"},
                {"from": "B", "to": "C", "partitioning": "split"},
                {"from": "C", "to": "D", "partitioning": "full"},
                {"from": "D", "to": "E", "partitioning": "full"},
            ],
        }
    )
    network = Metrics(problem).network
    subs = {(tuple(sorted(sub.operators)), sub.full) for sub in sub_topologies(network)}
    assert subs == {((0, 1, 2), False), ((3, 4), True)}
    found = units(network, frozenset({0, 1, 2}))
    assert [(sorted(unit.operators), len(unit.segments)) for unit in found] == [([0], 4), ([1, 2], 4)]


def test_structure_aware_has_no_plan_below_one_replica_per_operator() -> None:
    problem = _figure_1("independent")
    assert planner("structure-aware")(PlanRequest(problem, 3)).replicas == ()
    assert planner("exact")(PlanRequest(problem, 3)).output_fidelity > 0
