from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.planning.availability.placement import Placed, uniform_cluster
from understudy.planning.availability.placement.first_fit import primaries
from understudy.planning.availability.survival import Survival
from understudy.simulate.availability.figure import draw
from understudy.simulate.availability.generator import TEMPLATES, Templates, generate
from understudy.simulate.availability.run import Experiment, Row, Strategy, _replicate, simulate
from understudy.simulate.availability.session import archive
from understudy.simulate.availability.summary import Z95, summarise

if TYPE_CHECKING:
    from pathlib import Path

SMALL = Experiment(
    tuple(Strategy(name, 5.0) for name in ("random", "out-degree", "low-utilisation", "product")),
    crash=(0.02, 0.1),
    hosts=10,
    load=10.0,
    seed=3,
)


def test_the_generator_meets_the_load_and_shares_operators() -> None:
    workload = generate(50.0, np.random.default_rng(1))
    assert workload.total_load == pytest.approx(50.0)
    assert workload.load.max() <= 0.8 + 1e-9
    assert workload.degree.max() > 5
    again = generate(50.0, np.random.default_rng(1))
    assert again.load.tolist() == workload.load.tolist()
    assert generate(50.0, np.random.default_rng(2)).load.tolist() != workload.load.tolist()


def test_all_six_templates_make_queries() -> None:
    make = Templates(replace(SMALL.mix, templates=(1,) * 6), 10.0, np.random.default_rng(1))
    shapes = {tuple(operator.type for operator in make.query(n).ordered()) for n in range(200)}
    assert len(TEMPLATES) == 6
    assert len(shapes) >= 6


def test_a_run_follows_from_seed_and_number() -> None:
    assert simulate(SMALL, 4) == simulate(SMALL, 4)
    assert simulate(SMALL, 4) != simulate(SMALL, 5)
    assert simulate(SMALL, 4) != simulate(replace(SMALL, seed=4), 4)


def test_more_crashes_never_leave_more_running() -> None:
    for run in range(20):
        rows = simulate(SMALL, run)
        for low, high in zip(rows[::2], rows[1::2], strict=True):
            assert (low.crash, high.crash) == (0.02, 0.1)
            assert high.running <= low.running, f"seed 3, run {run}"


@pytest.mark.parametrize("placement", ["first-fit", "coloured", "interleaved"])
def test_full_replication_replicates_everything(placement: str) -> None:
    experiment = replace(SMALL, strategies=(Strategy("product", 10.0, placement),))
    for run in range(5):
        row = simulate(experiment, run)[0]
        assert row.replica_load == pytest.approx(10.0)
        assert row.replicated == pytest.approx(1.0 - row.unplaced / row.operators)
        assert row.unplaced <= 0.1 * row.operators, f"seed 3, run {run}"


def test_the_simulation_agrees_with_the_exact_model() -> None:
    """The mean over runs of simulated minus exact is zero within its 95 % interval."""
    strategy = SMALL.strategies[3]
    experiment = replace(SMALL, strategies=(strategy,), crash=(0.1,))
    differences = []
    for run in range(150):
        row = simulate(experiment, run)[0]
        make, chance, _ = (np.random.default_rng([experiment.seed, run, part]) for part in range(3))
        workload = generate(experiment.load, make, experiment.mix)
        cluster = uniform_cluster(experiment.hosts_for(strategy.spare), crash=0.1)
        homes = Placed(primaries(workload, cluster).copies)
        placed, _ = _replicate(experiment, strategy, workload, homes, chance)
        survival = Survival(cluster)
        exact = np.mean([survival.query([placed.copies[o] for o in q]) for q in workload.by_query])
        differences.append(row.running - float(exact))
    half = Z95 * np.std(differences, ddof=1) / len(differences) ** 0.5
    assert abs(np.mean(differences)) <= half, f"seed {experiment.seed}"


def test_the_package_that_is_shipped_to_executors_can_be_imported(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import understudy.simulate.availability.run as run;"
        "print(run.__file__)"
    )
    shipped = str(archive(tmp_path))
    ran = subprocess.run([sys.executable, "-c", code, shipped], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith(shipped)


def test_points_have_means_and_intervals(tmp_path: Path) -> None:
    rows = [row for run in range(30) for row in simulate(SMALL, run)]
    table = pa.table({name: list(column) for name, column in zip(Row._fields, zip(*rows, strict=True), strict=True)})
    pq.write_table(table, tmp_path / "rows.parquet")
    points = summarise(tmp_path)
    assert len(points) == 8
    point = next(p for p in points if p.heuristic == "product" and p.crash == 0.1)
    values = [100 * row.running for row in rows if row.heuristic == "product" and row.crash == 0.1]
    assert point.runs == 30
    assert point.running == pytest.approx(np.mean(values))
    assert point.high - point.running == pytest.approx(Z95 * np.std(values, ddof=1) / 30**0.5)
    draw(points, 10.0, tmp_path / "one.svg")
    draw(points, 10.0, tmp_path / "two.svg")
    drawn = (tmp_path / "one.svg").read_bytes()
    assert b"running queries" in drawn or len(drawn) > 10_000
    assert drawn == (tmp_path / "two.svg").read_bytes()
