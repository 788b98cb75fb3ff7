from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from understudy.simulate.availability.run import Experiment, Row, Strategy, simulate

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SMALL = Experiment((Strategy("product", 5.0), Strategy("random", 5.0)), crash=(0.02, 0.1), hosts=10, load=10.0)


def test_spark_gives_the_rows_of_the_plain_loop(spark: SparkSession, tmp_path: Path) -> None:
    from understudy.simulate.availability.job import Progress, run_job

    heard: list[Progress] = []
    folder = run_job(spark, SMALL, 12, tmp_path / "out", heard.append)
    rows = [Row(**row) for row in pq.read_table(folder).to_pylist()]
    expected = [row for run in range(12) for row in simulate(SMALL, run)]
    assert sorted(rows) == sorted(expected)
    assert heard[-1].done == heard[-1].tasks


def test_a_failing_task_reaches_the_caller(spark: SparkSession, tmp_path: Path) -> None:
    from understudy.simulate.availability.job import run_job

    unknown = Experiment((Strategy("no such heuristic", 5.0),), hosts=10, load=10.0)
    with pytest.raises(Exception, match="no such heuristic"):
        run_job(spark, unknown, 2, tmp_path / "out")
