"""Short runs of typical streaming queries, so that the class archive holds what nodes will load."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from understudy.stream import session
from understudy.stream.profile import QUICK
from understudy.stream.settings import ROCKSDB, STREAMING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

BATCHES = 2


def stateless(rows: DataFrame) -> DataFrame:
    return rows.where("value % 2 = 0").select("timestamp", f.upper(f.concat(f.lit("k"), "value")).alias("word"))


def grouped(rows: DataFrame) -> DataFrame:
    return rows.groupBy((f.col("value") % 7).alias("key")).agg(f.count("*").alias("n"), f.sum("value").alias("total"))


def windowed(rows: DataFrame) -> DataFrame:
    late = rows.withWatermark("timestamp", "10 seconds")
    return late.groupBy(f.window("timestamp", "5 seconds"), f.col("value") % 7).count()


def joined(rows: DataFrame) -> DataFrame:
    late = rows.withWatermark("timestamp", "10 seconds")
    left = late.select(f.col("value").alias("a"), f.col("timestamp").alias("at"))
    right = late.select(f.col("value").alias("b"), f.col("timestamp").alias("bt"))
    return left.join(right, f.expr("a = b AND bt BETWEEN at AND at + INTERVAL 5 SECONDS"))


def distinct(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("timestamp", "10 seconds").dropDuplicates(["value", "timestamp"])


def in_python(rows: DataFrame) -> DataFrame:
    return rows.mapInArrow(lambda batches: batches, rows.schema)


QUERIES: tuple[tuple[Callable[[DataFrame], DataFrame], str], ...] = (
    (stateless, "append"),
    (grouped, "update"),
    (windowed, "update"),
    (windowed, "append"),
    (joined, "append"),
    (distinct, "append"),
    (in_python, "append"),
)


def run(spark: SparkSession, query: Callable[[DataFrame], DataFrame], mode: str, checkpoint: Path) -> None:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).option("numPartitions", 1)
    seen: list[int] = []

    def sink(rows: DataFrame, batch: int) -> None:
        rows.toArrow()
        seen.append(batch)

    writer = query(source.load()).writeStream.foreachBatch(sink).outputMode(mode)
    running = writer.option("checkpointLocation", str(checkpoint)).start()
    while len(seen) < BATCHES and running.isActive:
        time.sleep(0.05)
    if failure := running.exception():
        raise failure
    running.stop()


def main(archive: str) -> None:
    """Every query once with each state store; the JVM writes the archive when it ends."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        spark = session.start("exercise", "local[2]", QUICK, home, archiving=Path(archive))
        for number, (query, mode) in enumerate(QUERIES):
            run(spark, query, mode, home / f"memory-{number}")
        for key, value in ROCKSDB.items():
            spark.conf.set(key, value)
        spark.conf.set(f"{STREAMING}stateStore.maintenanceInterval", "1s")
        for number, (query, mode) in enumerate(QUERIES[1:5]):
            run(spark, query, mode, home / f"rocks-{number}")
        session.stop_jvm(timeout_seconds=300)


if __name__ == "__main__":
    main(sys.argv[1])
