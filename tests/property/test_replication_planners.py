"""Every planner against brute force on random problems of up to 14 tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.replication_problems import best_by_brute_force, problems
from understudy.planning.replication.deadline import Deadline
from understudy.planning.replication.exact.search import best_plan
from understudy.planning.replication.metrics import Metric, Metrics
from understudy.planning.replication.plan import PlanRequest
from understudy.planning.replication.registry import NAMES, planner
from understudy.planning.replication.validator import problems_with
from understudy.planning.status import Status

if TYPE_CHECKING:
    from understudy.planning.replication.problem import ReplicationProblem

_RELAXED = settings(max_examples=40, deadline=None)


@_RELAXED
@given(problems())
def test_exact_equals_brute_force_for_every_budget(problem: ReplicationProblem) -> None:
    for budget, best in enumerate(best_by_brute_force(problem)):
        plan = planner("exact")(PlanRequest(problem, budget))
        assert plan.status is Status.OPTIMAL
        assert plan.output_fidelity == pytest.approx(best, abs=1e-9)
        assert problems_with(problem, plan) == []


@settings(max_examples=25, deadline=None)
@given(problems(most_tasks=11), st.sampled_from([0, 1, 4]), st.data())
def test_the_programme_behind_exact_equals_brute_force(
    problem: ReplicationProblem, effort: int, data: st.DataObject
) -> None:
    """With little or no effort allowed, curves give up and the programme and its boxes must do the work."""
    metrics = Metrics(problem)
    best = best_by_brute_force(problem)
    budget = data.draw(st.integers(0, problem.task_count))
    tasks, bound = best_plan(metrics, budget, Metric.FIDELITY, Deadline(30), effort=effort)
    assert len(tasks) <= budget
    assert metrics.output_fidelity(metrics.alive(tasks)) == pytest.approx(best[budget], abs=1e-6)
    assert bound == pytest.approx(best[budget], abs=2e-6)


@settings(max_examples=25, deadline=None)
@given(problems(most_tasks=10), st.data())
def test_exact_finds_the_best_completeness(problem: ReplicationProblem, data: st.DataObject) -> None:
    best = best_by_brute_force(problem, Metric.COMPLETENESS)
    budget = data.draw(st.integers(0, problem.task_count))
    plan = planner("exact")(PlanRequest(problem, budget, Metric.COMPLETENESS))
    assert plan.internal_completeness == pytest.approx(best[budget], abs=1e-6)
    assert problems_with(problem, plan) == []


@_RELAXED
@given(problems(most_tasks=12), st.data())
def test_dynamic_equals_brute_force_where_it_finishes(problem: ReplicationProblem, data: st.DataObject) -> None:
    budget = data.draw(st.integers(0, problem.task_count))
    plan = planner("dynamic")(PlanRequest(problem, budget, time_limit_s=2))
    assert problems_with(problem, plan) == []
    if plan.status is Status.OPTIMAL:
        assert plan.output_fidelity == pytest.approx(best_by_brute_force(problem)[budget], abs=1e-9)


@_RELAXED
@given(problems(), st.sampled_from(NAMES), st.sampled_from(Metric), st.data())
def test_no_planner_beats_the_optimum_or_lies(
    problem: ReplicationProblem, name: str, metric: Metric, data: st.DataObject
) -> None:
    budget = data.draw(st.integers(0, problem.task_count + 1))
    request = PlanRequest(problem, budget, metric, time_limit_s=2, seed=7)
    plan = planner(name)(request)
    best = best_by_brute_force(problem, metric)[min(budget, problem.task_count)]
    assert plan.value <= best + 1e-9
    assert plan.upper_bound >= best - 1e-6
    assert problems_with(problem, plan) == []
    assert planner(name)(request).replicas == plan.replicas
