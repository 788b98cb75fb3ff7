"""Random topologies keep to their specification."""

from __future__ import annotations

import pytest

from understudy.errors import InvalidInput
from understudy.simulate.replication_study import Study, parse_spec, run, steps
from understudy.simulate.topologies import TopologySpec, random_topology

SEEDS = range(20)


@pytest.mark.parametrize("seed", SEEDS)
def test_knobs_hold(seed: int) -> None:
    problem = random_topology(TopologySpec(operators=(5, 10), parallelism=(2, 7), kind="structured"), seed)
    assert 5 <= len(problem.operators) <= 10
    assert all(2 <= len(op.rates) <= 7 for op in problem.operators)
    assert not any(str(stream.partitioning) == "full" for stream in problem.streams)
    assert not any(op.correlated for op in problem.operators)
    assert all(len(set(op.rates)) == 1 for op in problem.operators)
    assert len(problem.sinks) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_half_the_operators_can_be_joins(seed: int) -> None:
    problem = random_topology(TopologySpec(operators=(6, 10), joins=0.5, tasks=100), seed)
    joins = [op for op in problem.operators if op.correlated]
    assert problem.task_count == 100
    assert len(joins) == round(len(problem.operators) / 2)
    assert all(len(problem.inputs_of(op.name)) > 1 for op in joins)


def test_a_seed_means_one_topology() -> None:
    spec = TopologySpec(skew=0.5, forks=0.3)
    assert random_topology(spec, 4) == random_topology(spec, 4)
    assert random_topology(spec, 4) != random_topology(spec, 5)


def test_zipf_rates_are_skewed() -> None:
    problem = random_topology(TopologySpec(skew=1.0, parallelism=(4, 4)), 1)
    rates = sorted(problem.operators[0].rates, reverse=True)
    assert rates[0] / rates[3] == pytest.approx(4.0)


def test_a_specification_can_be_written_on_one_line() -> None:
    spec = parse_spec("kind=full,joins=0.5,operators=5-8,parallelism=3,tasks=40")
    assert spec == TopologySpec(kind="full", joins=0.5, operators=(5, 8), parallelism=(3, 3), tasks=40)
    for wrong in ("colour=red", "operators=many", "kind"):
        with pytest.raises(InvalidInput):
            parse_spec(wrong)


def test_the_study_compares_on_the_same_topologies() -> None:
    study = Study(topologies=4, ratios=(0.3, 0.6), time_limit_s=5)
    ticks: list[None] = []
    specs = {"small": TopologySpec(operators=(3, 4), parallelism=(1, 4))}
    rows = run(study, specs, lambda: ticks.append(None))
    assert len(ticks) == steps(study, specs) == 8
    by = {(row.algorithm, row.ratio): row for row in rows}
    for ratio in study.ratios:
        assert by["exact", ratio].fidelity >= by["structure-aware", ratio].fidelity - 1e-9
        assert by["exact", ratio].fidelity >= by["greedy", ratio].fidelity - 1e-9
        assert by["exact", ratio].proven == 4
        assert by["structure-aware", ratio].of_exact is not None
