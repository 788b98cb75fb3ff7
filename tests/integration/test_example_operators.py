"""The single-file examples' operators on plain Structured Streaming, against the same sums in Python."""

from __future__ import annotations

import importlib
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from understudy.model.topology import Topology
from understudy.runtime.application import load
from understudy.stream.frames import share_code

pytestmark = pytest.mark.spark
EXAMPLES = Path(__file__).parents[2] / "examples"


def application(name: str, **settings: str) -> Topology:
    path = EXAMPLES / f"{name}.py"
    app = load(path, settings)
    share_code(path, app)
    return app


def generated(app: Topology, epochs: int) -> list[pa.Table]:
    reader = app.sources[0].source.open(0, 1, app.epoch_s)
    return [reader.read(epoch, None, None) for epoch in range(epochs)]


def run(spark: SparkSession, app: Topology, tables: list[pa.Table], folder: Path) -> list[dict[str, Any]]:
    """Every operator as a query of its own over files, one file a batch, like epochs."""
    for operator in app.operators:
        source = folder / operator.name
        source.mkdir(parents=True)
        for i, table in enumerate(tables):
            path = source / f"{i:05d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (i, i))  # Spark takes files in the order of their times
        collected: list[pa.Table] = []

        def keep(batch: DataFrame, _: int, collected: list[pa.Table] = collected) -> None:
            collected.append(batch.toArrow())

        schema = spark.read.parquet(str(source)).schema
        frames = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
        query = (
            operator(frames)
            .writeStream.foreachBatch(keep)
            .outputMode(operator.output_mode)
            .option("checkpointLocation", str(folder / f"{operator.name}.checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        tables = collected
    return [row for table in tables for row in table.to_pylist()]


def test_wordcount_ranks_whole_windows(spark: SparkSession, tmp_path: Path) -> None:
    app = application("wordcount", rate="50", window="2 seconds")
    tables = generated(app, 12)
    expected: dict[int, Counter[str]] = {}
    for epoch, table in enumerate(tables):
        for text in table["text"].to_pylist():
            expected.setdefault(epoch // 2 * 2, Counter()).update(text.split())
    seen = {}
    for row in run(spark, app, tables, tmp_path):
        start = int(row["start"].timestamp())
        ranked = sorted(((n, word) for word, n in expected[start].items()), reverse=True)[:10]
        assert list(zip(row["counts"], row["words"], strict=True)) == ranked
        assert start not in seen, "a window is ranked once"
        seen[start] = row
    # A window is counted when its watermark has passed, four epochs later, and ranked when the next one is counted.
    assert sorted(seen) == [0, 2, 4]


def test_sentiment_scores_what_names_a_keyword_in_sliding_windows(spark: SparkSession, tmp_path: Path) -> None:
    app = application("sentiment", rate="40", shape="spikes", keywords="stage,film")
    lexicon = importlib.import_module("sentiment").LEXICON
    tables = generated(app, 26)
    expected: dict[tuple[int, str], list[int]] = {}
    for table in tables:
        for text, at in zip(table["text"].to_pylist(), table["at"].to_pylist(), strict=True):
            second = int(at.timestamp()) // 2 * 2
            for topic in {"stage", "film"} & set(text.split()):
                for start in range(second - 8, second + 1, 2):
                    value = sum(lexicon.get(word, 0) for word in text.split())
                    expected.setdefault((start, topic), []).append(value)
    got = {(int(row["start"].timestamp()), row["topic"]): row for row in run(spark, app, tables, tmp_path)}
    assert len(got) > 20
    for key, row in got.items():
        scores = sorted(expected[key])
        assert (row["messages"], row["median"]) == (len(scores), scores[len(scores) // 2])
        assert row["mean"] == pytest.approx(sum(scores) / len(scores), abs=1e-5)
    assert max(row["messages"] for row in got.values()) > 2 * min(row["messages"] for row in got.values())
