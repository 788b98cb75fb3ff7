"""A whole figure as one Spark job: run numbers in, rows of results out, written as Parquet."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import InheritableThread

from understudy.simulate.availability.run import Experiment, Row, simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

SCHEMA = (
    "run long, heuristic string, spare double, placement string, selection string, level long, crash double, "
    "running double, replicated double, replica_load double, unplaced long, queries long, operators long"
)
TASKS_PER_CORE = 16
GROUP = "understudy-availability"


@dataclass(frozen=True)
class Progress:
    done: int
    tasks: int


def run_job(
    spark: SparkSession,
    experiment: Experiment,
    runs: int,
    folder: Path,
    report: Callable[[Progress], None] | None = None,
) -> Path:
    """Overwrites `folder` and returns it; calls `report` with the finished tasks a few times a second."""
    cores = spark.sparkContext.defaultParallelism
    tasks = max(1, min(runs, TASKS_PER_CORE * cores))

    def many(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [row for run in batch.column(0).to_pylist() for row in simulate(experiment, run)]
            if rows:
                columns = zip(*rows, strict=True)
                yield pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=Row._fields)

    frame = spark.range(0, runs, 1, tasks).mapInArrow(many, SCHEMA)
    _with_progress(spark, tasks, report, lambda: frame.write.mode("overwrite").parquet(str(folder)))
    return folder


def _with_progress(
    spark: SparkSession, tasks: int, report: Callable[[Progress], None] | None, action: Callable[[], None]
) -> None:
    failure: list[BaseException] = []
    ended = Event()

    def work() -> None:
        try:
            spark.sparkContext.setJobGroup(GROUP, "availability simulation", interruptOnCancel=True)
            action()
        except BaseException as error:  # noqa: BLE001 - carried to the caller's thread and raised there
            failure.append(error)
        finally:
            ended.set()

    thread = InheritableThread(target=work, name="availability-job", daemon=True)
    thread.start()
    try:
        while not ended.wait(0.25):
            if report is not None:
                report(Progress(_finished(spark), tasks))
    except KeyboardInterrupt:
        spark.sparkContext.cancelJobGroup(GROUP)
        raise
    thread.join()
    if failure:
        raise failure[0]
    if report is not None:
        report(Progress(tasks, tasks))


def _finished(spark: SparkSession) -> int:
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)
