"""The fast metrics against each other and against the validator's plain recursion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.replication_problems import problems
from understudy.planning.replication.exact.build import expression_of
from understudy.planning.replication.exact.expressions import Algebra
from understudy.planning.replication.files import parse, to_data
from understudy.planning.replication.incremental import IncrementalValue
from understudy.planning.replication.mc_trees import count, enumerate_trees
from understudy.planning.replication.metrics import Metric, Metrics
from understudy.planning.replication.sensitivity import sensitivity
from understudy.planning.replication.validator import recount

if TYPE_CHECKING:
    from understudy.planning.replication.problem import ReplicationProblem

_SETTINGS = settings(max_examples=80, deadline=None)


@st.composite
def _problem_and_alive(draw: st.DrawFn) -> tuple[ReplicationProblem, list[bool]]:
    problem = draw(problems())
    return problem, draw(st.lists(st.booleans(), min_size=problem.task_count, max_size=problem.task_count))


@_SETTINGS
@given(_problem_and_alive())
def test_metrics_agree_with_plain_recursion(case: tuple[ReplicationProblem, list[bool]]) -> None:
    problem, alive = case
    metrics = Metrics(problem)
    names = {name for name, lives in zip(problem.tasks, alive, strict=True) if lives}
    fidelity, completeness = recount(problem, names)
    assert metrics.output_fidelity(alive) == pytest.approx(fidelity, abs=1e-12)
    assert metrics.internal_completeness(alive) == pytest.approx(completeness, abs=1e-12)


@_SETTINGS
@given(_problem_and_alive(), st.lists(st.integers(0, 10_000), max_size=12), st.sampled_from(Metric))
def test_incremental_agrees_with_a_fresh_evaluation(
    case: tuple[ReplicationProblem, list[bool]], flips: list[int], metric: Metric
) -> None:
    problem, alive = case
    metrics = Metrics(problem)
    value = IncrementalValue(metrics, np.array(alive), metric)
    for flip in flips:
        task = flip % problem.task_count
        expected = value.value_if([task])
        assert value.flip(task) == pytest.approx(expected, abs=1e-12)
        assert value.value == pytest.approx(metrics.value(value.alive, metric), abs=1e-9)


@_SETTINGS
@given(_problem_and_alive(), st.sampled_from(Metric), st.booleans())
def test_expressions_have_the_value_of_the_metric(
    case: tuple[ReplicationProblem, list[bool]], metric: Metric, only_scalars: bool
) -> None:
    problem, alive = case
    metrics = Metrics(problem)
    algebra = Algebra(only_scalars=only_scalars)
    term = expression_of(metrics.network, metric, algebra)
    tasks = sum(1 << i for i, lives in enumerate(alive) if lives)
    inside = term.tasks & tasks == term.tasks
    value = term.coefficient * algebra.value(term.sums, tasks) if inside else 0.0
    assert value == pytest.approx(metrics.value(alive, metric), abs=1e-9)


@_SETTINGS
@given(_problem_and_alive())
def test_sensitivity_is_the_change_by_one_task(case: tuple[ReplicationProblem, list[bool]]) -> None:
    """For completeness, which is linear in every task whatever the shape."""
    problem, alive = case
    metrics = Metrics(problem)
    change = sensitivity(metrics, alive, Metric.COMPLETENESS)
    value = IncrementalValue(metrics, np.array(alive), Metric.COMPLETENESS)
    for task in range(problem.task_count):
        sign = -1 if alive[task] else 1
        assert value.value_if([task]) - value.value == pytest.approx(sign * change[task], abs=1e-9)


@_SETTINGS
@given(_problem_and_alive())
def test_one_more_task_never_hurts(case: tuple[ReplicationProblem, list[bool]]) -> None:
    problem, alive = case
    metrics = Metrics(problem)
    more = np.array(alive) | np.eye(problem.task_count, dtype=bool)
    assert (metrics.output_fidelities(more) >= metrics.output_fidelity(alive) - 1e-12).all()


@_SETTINGS
@given(problems(most_tasks=9))
def test_as_many_trees_are_listed_as_counted_and_each_is_minimal_work(problem: ReplicationProblem) -> None:
    number = count(problem)
    metrics = Metrics(problem)
    if number <= 500:
        trees = list(enumerate_trees(problem))
        assert len(trees) == number
        silent = any(rate == 0 for op in problem.operators for rate in op.rates)
        values = [metrics.output_fidelity(metrics.alive(tree)) for tree in trees]
        assert silent or all(value > 0 for value in values)


@_SETTINGS
@given(problems())
def test_the_file_form_gives_the_same_problem(problem: ReplicationProblem) -> None:
    assert parse(to_data(problem)) == problem
