"""The operators of an example on plain Structured Streaming, each over the whole stream: one file a batch, like epochs.

Everything runs in the session that all tests share. Slices, keys and failures are not part of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tests.examples.running import app_file
from tests.oracles.lines import Lines, iso
from tests.oracles.rows import Epochs, generated
from understudy.model.topology import Operator, Source, Topology
from understudy.runtime.application import load
from understudy.sources import Generator
from understudy.stream.frames import share_code


def run_operators(
    spark: SparkSession, name: str, settings: Mapping[str, str], epochs: int, folder: Path
) -> dict[str, Lines]:
    """The rows of every operator in every epoch, in the order of their text, with times as JSON has them."""
    path = app_file(name)
    app = load(path, settings)
    share_code(path, app)
    tables = {source.name: _generated(source, epochs, app.epoch_s) for source in app.sources}
    for stream, made in tables.items():
        _write(made, folder / stream)
    found = {}
    for operator in app.in_order():
        emitted = _run(spark, operator, folder)[:epochs]  # Spark adds a batch without rows
        _write(emitted, folder / operator.name)
        found[operator.name] = [sorted(map(_line, table.to_pylist()), key=str) for table in emitted]
    return found


def _generated(source: Source, epochs: int, epoch_s: float) -> list[pa.Table]:
    readers = [source.source.open(number, source.slices, epoch_s) for number in range(source.slices)]
    return [pa.concat_tables(reader.read(epoch, None, None) for reader in readers) for epoch in range(epochs)]


def _write(tables: Sequence[pa.Table], folder: Path) -> None:
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        path = folder / f"{number:05d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (number, number))  # Spark takes files in the order of their times


def _run(spark: SparkSession, operator: Operator, folder: Path) -> list[pa.Table]:
    collected: list[pa.Table] = []

    def keep(batch: DataFrame, _: int) -> None:
        collected.append(batch.toArrow())

    def stream(name: str) -> DataFrame:
        place = str(folder / name)
        reader = spark.readStream.schema(spark.read.parquet(place).schema)
        return reader.option("maxFilesPerTrigger", 1).parquet(place)

    query = (
        operator(*map(stream, operator.inputs))
        .writeStream.foreachBatch(keep)
        .outputMode(operator.output_mode)
        .option("checkpointLocation", str(folder / f"{operator.name}.checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return collected


def _line(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: iso(value) if isinstance(value, datetime) else value for name, value in row.items()}


def read_again(app: Topology, epochs: int) -> list[Epochs]:
    """The rows of every generator of an application, made again without the project's source."""
    found = []
    for entry in app.sources:
        source = entry.source
        assert isinstance(source, Generator)
        assert isinstance(source.rate, float)
        found.append(generated(source.make, source.rate, source.seed, epochs, app.epoch_s))
    return found
