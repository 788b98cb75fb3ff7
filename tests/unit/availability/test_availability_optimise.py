from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from understudy.errors import InvalidInput
from understudy.planning.availability.optimise import Comparison, Problem, optimise
from understudy.planning.availability.optimise.problem import State, load_copies
from understudy.planning.availability.placement import Placed, uniform_cluster
from understudy.planning.availability.placement.validate import violations
from understudy.planning.availability.plan import cost_of
from understudy.planning.availability.survival import Survival, availability
from understudy.planning.status import Status
from understudy.simulate.availability.instances import random_problem, workload


def checked(problem: Problem, seed: int) -> Comparison:
    """Every answer is checked from scratch: valid, honest about its numbers, true to its status and bound."""
    compared = optimise(problem, seed, rounds=3, generations=4)
    for answer in compared.answers:
        assert violations(problem.workload, problem.cluster, answer.copies) == [], f"seed {seed}"
        assert tuple(hosts[0] for hosts in answer.copies) == problem.primary
        assert answer.cost == pytest.approx(cost_of(problem.workload, problem.cluster, answer.copies))
        rng = np.random.default_rng(seed)
        value = availability(problem.workload, problem.cluster, Placed(answer.copies), rng).mean
        assert answer.availability == pytest.approx(value, abs=1e-12)
        kept = problem.satisfied(answer.availability, answer.cost)
        assert kept == (answer.status is not Status.INFEASIBLE), f"seed {seed}: {answer.method}"
        if compared.bound is not None and kept:
            if problem.cost_limit is not None:
                assert answer.availability <= compared.bound.value + 1e-8, f"seed {seed}"
            else:
                assert answer.cost >= compared.bound.value - 1e-6, f"seed {seed}"
    return compared


def brute_force(problem: Problem) -> tuple[bool, float, float]:
    survival = Survival(problem.cluster)
    hosts = range(len(problem.cluster.hosts))
    groups = problem.cluster.groups
    choices = [[(home,), *((home, host) for host in hosts if groups[host] != groups[home])] for home in problem.primary]
    valid = [c for c in product(*choices) if not violations(problem.workload, problem.cluster, c)]
    return max(load_copies(problem, copies, survival).rank for copies in valid)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("least_cost", [False, True])
def test_never_worse_than_the_heuristics(seed: int, least_cost: bool) -> None:
    """Fifty random instances: 25 of each kind."""
    problem = random_problem(seed, 7, 4, 5, least_cost)
    compared = checked(problem, seed)
    heuristic, *searches = compared.answers
    floor = problem.rank(heuristic.availability, heuristic.cost)
    for answer in searches:
        assert problem.rank(answer.availability, answer.cost)[:2] >= floor[:2], f"seed {seed}: {answer.method}"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("least_cost", [False, True])
def test_equals_brute_force_on_small_problems(seed: int, least_cost: bool) -> None:
    problem = random_problem(100 + seed, 4, 3, 4, least_cost)
    best = checked(problem, seed).best
    truth = brute_force(problem)
    assert best.status is (Status.OPTIMAL if truth[0] else Status.INFEASIBLE), f"seed {seed}"
    assert problem.rank(best.availability, best.cost)[1] == pytest.approx(truth[1], abs=1e-9)


def test_two_bare_operators_on_one_host_are_protected_together() -> None:
    """One copy alone gains nothing, so a search by single operators would stop before the first step."""
    made = workload([0.3, 0.3], [[0, 1]])
    problem = Problem(made, uniform_cluster(3, 1.0, 0.1), (0, 0), cost_limit=0.6)
    best = checked(problem, 1).best
    assert best.status is Status.OPTIMAL
    assert [len(hosts) for hosts in best.copies] == [2, 2]


def test_an_unreachable_target_is_infeasible() -> None:
    made = workload([0.6, 0.6], [[0, 1]])
    problem = Problem(made, uniform_cluster(2, 1.0, 0.1), (0, 1), target=0.999)
    compared = checked(problem, 1)
    assert compared.best.status is Status.INFEASIBLE
    assert compared.best.availability == pytest.approx(0.81)


def test_second_replicas_when_one_is_not_enough() -> None:
    made = workload([0.2], [[0]])
    cluster = uniform_cluster(4, 1.0, 0.1)
    one = checked(Problem(made, cluster, (0,), target=0.995, level=1), 1)
    two = checked(Problem(made, cluster, (0,), target=0.995, level=2), 1)
    assert one.best.status is Status.INFEASIBLE
    assert two.best.status is Status.OPTIMAL
    assert two.best.cost == pytest.approx(0.4)


@pytest.mark.parametrize("goal", [{}, {"cost_limit": 1.0, "target": 0.9}, {"cost_limit": -1.0}, {"target": 99.9}])
def test_a_problem_has_one_goal_in_range(goal: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        Problem(workload([0.1], [[0]]), uniform_cluster(1), (0,), goal.get("cost_limit"), goal.get("target"))


def test_a_state_undoes_what_it_did() -> None:
    problem = random_problem(7, 6, 4, 5, least_cost=False)
    state = State(problem)
    before = (state.availability, list(state.cpu), state.cost)
    operator, host = next(
        (o, h) for o in range(6) for h in range(5) if state.allowed(o, h) and problem.workload.by_operator[o]
    )
    changes = {operator: state.with_replica(operator, host)}
    gain = state.gain(changes)
    state.apply(changes)
    assert state.availability == pytest.approx(before[0] + gain)
    state.apply({operator: state.copies[operator][:1]})
    assert state.availability == pytest.approx(before[0])
    assert state.cpu == pytest.approx(before[1])
    assert state.cost == pytest.approx(before[2])
