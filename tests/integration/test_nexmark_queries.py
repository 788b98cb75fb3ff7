"""Every Nexmark query on plain Structured Streaming, epoch by epoch, against its oracle, in one session."""

from __future__ import annotations

import os
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.oracles import nexmark as oracle
from tests.oracles.rows import Output

from understudy.nexmark.catalogue import QUERIES, Stage
from understudy.nexmark.events import SCHEMA, Events

pytestmark = pytest.mark.spark
RATE, EPOCH_S, EPOCHS = 50.0, 6.0, 9
WITHOUT_STATE = 3
"""The last epochs, for queries that remember nothing. Earlier ones have too few auctions for the rarest filter."""
# Out of order by up to ten seconds, of which the watermark forgives four, and across midnight.
EVENTS = Events(RATE, EPOCH_S, seed=3, group=500, start=datetime.fromisoformat("2015-07-14T23:59:30+00:00"))


@pytest.fixture(scope="module")
def tables() -> list[pa.Table]:
    return [EVENTS.make(epoch, 0, int(RATE * EPOCH_S), None) for epoch in range(EPOCHS)]


def run(spark: SparkSession, stage: Stage, tables: list[pa.Table], folder: Path) -> list[pa.Table]:
    """One operator as a query over files, one file a batch, like epochs."""
    folder.mkdir()
    for number, table in enumerate(tables):
        path = folder / f"{number:05d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (number, number))  # Spark takes files in the order of their times
    collected: list[pa.Table] = []

    def keep(batch: DataFrame, _: int) -> None:
        collected.append(batch.toArrow())

    reader = spark.readStream.schema(spark.read.parquet(str(folder)).schema).option("maxFilesPerTrigger", 1)
    query = (
        stage.build(reader.parquet(str(folder)))
        .writeStream.foreachBatch(keep)
        .outputMode(stage.output_mode)
        .option("checkpointLocation", str(folder.with_suffix(".checkpoint")))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return collected


def counted(tables: list[pa.Table]) -> Output:
    return [Counter(tuple(row.values()) for row in table.to_pylist()) for table in tables]


def differing(got: Output, wanted: Output) -> list[Any]:
    """Epoch, what is missing and what is too much, where something is."""
    both = enumerate(zip(got, wanted, strict=True))
    return [(epoch, list((w - g).items())[:2], list((g - w).items())[:2]) for epoch, (g, w) in both if g != w]


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_equals_its_oracle(name: str, spark: SparkSession, tables: list[pa.Table], tmp_path: Path) -> None:
    given = tables[-WITHOUT_STATE:] if QUERIES[name].state.startswith("none") else tables
    made = given
    for stage in QUERIES[name].stages:
        made = run(spark, stage, made, tmp_path / stage.name)
    expected = oracle.EXPECTED[name]([table.to_pylist() for table in given])
    assert sum(epoch.total() for epoch in expected) > 1, "an expectation of nothing proves nothing"
    assert differing(counted(made), expected) == []


def test_the_schema_is_that_of_the_rows(spark: SparkSession, tables: list[pa.Table]) -> None:
    assert sorted(spark.createDataFrame([], SCHEMA).columns) == sorted(tables[0].column_names)
