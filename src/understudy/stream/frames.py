"""The edge to PySpark: streaming DataFrames of epochs, their gates, and queries over them."""

from __future__ import annotations

import json
import os
import sys
import uuid
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import IntegerType, StructField, StructType

from understudy.log import bag
from understudy.log.interface import Stored
from understudy.model.layout import Channel
from understudy.model.segments import SegmentPlace
from understudy.model.topology import OutputMode, Topology

FORMAT = "org.understudy.EpochSource"
_TAG = "_input"
_UNLIMITED = 1 << 62


def share_code(app: Path, topology: Topology) -> None:
    """Lets Python workers run the user's functions: those of the file itself travel, files beside it are found."""
    for operator in topology.operators:
        register_pickle_by_value(sys.modules[operator.function.__module__])  # type: ignore[no-untyped-call]
    beside = [str(app.resolve().parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, beside))


def gate(spark: SparkSession, replica: str) -> Any:
    """The Java object through which epochs are announced to the query of a replica."""
    jvm: Any = spark._jvm
    return jvm.org.understudy.Gate.of(replica)


def remove_gate(spark: SparkSession, replica: str) -> None:
    jvm: Any = spark._jvm
    jvm.org.understudy.Gate.remove(replica)


def watermarks(frame: DataFrame) -> int:
    """How many watermarks of this frame a checkpoint of Spark would lose; 0 with one, or if the largest counts."""
    jvm: Any = frame.sparkSession._jvm
    return int(jvm.org.understudy.Gate.countWatermarks(frame._jdf))


def start_meter(spark: SparkSession) -> None:
    """From here on the CPU time of every query is counted."""
    jvm: Any = spark._jvm
    jvm.org.understudy.Meter.start(spark.sparkContext._jsc.sc())


def inputs(
    spark: SparkSession, replica: str, schemas: Sequence[pa.Schema], start: int = 0, *, strict: bool = False
) -> list[DataFrame]:
    """One streaming DataFrame per input, all cut from one source: two sources could advance in different batches.

    A `strict` order holds across all rows of an epoch, so they make one partition, however many they are.
    """
    spark_schemas = [from_arrow_schema(schema) for schema in schemas]
    reader = (
        spark.readStream.format(FORMAT)
        .option("replica", replica)
        .option("start", str(start))
        .option("inputs", ",".join(str(len(schema)) for schema in schemas))
    )
    if strict:
        reader = reader.option("rowsPerPartition", str(_UNLIMITED))
    if len(schemas) == 1:
        return [reader.schema(spark_schemas[0]).load()]
    source = reader.schema(_tagged(spark_schemas)).load()
    return [
        source.where(F.col(_TAG) == number).select(
            *[F.col(_column(number, field.name)).alias(field.name) for field in schema]
        )
        for number, schema in enumerate(spark_schemas)
    ]


def _tagged(schemas: Sequence[StructType]) -> StructType:
    columns = [
        StructField(_column(number, field.name), field.dataType)
        for number, schema in enumerate(schemas)
        for field in schema
    ]
    return StructType([StructField(_TAG, IntegerType()), *columns])


def _column(number: int, name: str) -> str:
    return f"_{number}_{name}"


def input_column(name: str, inputs: int) -> tuple[int, str]:
    """The input and the column behind a column of the source."""
    if inputs == 1:
        return 0, name
    number, _, column = name[1:].partition("_")
    return int(number), column


def is_tag(name: str) -> bool:
    """Whether a column of the source of several inputs only tells them apart."""
    return name == _TAG


def start(
    frame: DataFrame, name: str, output_mode: OutputMode, checkpoint: Path, batch: Callable[[DataFrame, int], None]
) -> StreamingQuery:
    own_identity(checkpoint)
    return (
        frame.writeStream.outputMode(output_mode)
        .queryName(name)
        .option("checkpointLocation", str(checkpoint))
        .foreachBatch(batch)
        .start()
    )


def own_identity(checkpoint: Path) -> None:
    """Two queries with one id in a session stop each other, so a copied checkpoint gets an id of its own."""
    metadata = checkpoint / "metadata"
    if metadata.exists():
        metadata.write_text(json.dumps({"id": str(uuid.uuid4())}))


def strict_lines(
    path: Path, bags: Sequence[tuple[Channel, Stored]], schemas: Sequence[pa.Schema], time: str
) -> list[str]:
    """The rows of an epoch sorted by their time, then channel, then position, in a file of this replica."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    with path.open("wb") as file:
        for number, schema in enumerate(schemas):
            tables = [stored.rows(channel, schema) for channel, stored in bags if channel.input == number]
            rows = pa.concat_tables(tables)
            # Arrow's sort is stable for equal times: channels and positions keep their order.
            rows = rows.take(pc.sort_indices(rows, sort_keys=[(time, "ascending")]))
            for content, count in bag.streams(rows):
                crc = zlib.crc32(content)
                lines.append(str(SegmentPlace(number, file.tell(), content.size, count, crc, str(path))))
                file.write(content)
    return lines
