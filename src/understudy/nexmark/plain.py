"""A query in plain Structured Streaming: what one writes without understudy, over the same rows, to compare with.

Every epoch is a Parquet file, and every file is a micro-batch of Spark's own file source. A query of two stages is two
streaming queries, because Spark chains no operators in update mode; the first one's batches are files for the second.
The last stage writes each batch as Parquet in `foreachBatch`. Session and Spark settings are those of a node.

    python -m understudy.nexmark.plain '{"query": "q5", "folder": "/tmp/plain", …}'

runs one query in this process and prints its `Figures` as JSON; it ends when its standard input closes.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict
from pyspark.sql.pandas.types import from_arrow_schema

from understudy.model import hashing
from understudy.model.durations import seconds
from understudy.model.schema import conform, parse
from understudy.nexmark.catalogue import QUERIES, Stage
from understudy.nexmark.events import SCHEMA, Events
from understudy.nexmark.figures import Figures, measured
from understudy.runtime.parent import exit_with_parent
from understudy.sources import Generator
from understudy.stream import session
from understudy.stream.profile import PROFILES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 0.05


class Request(BaseModel):
    """One run: everything a process of its own must know."""

    model_config = ConfigDict(frozen=True)

    query: str
    folder: Path
    rate: float
    seed: int
    epoch: str
    epochs: int
    fast: bool
    master: str
    profile: str


def run(request: Request) -> Figures:
    """Runs a query to its end in a session of its own and measures it."""
    spark = session.start("plain", request.master, PROFILES[request.profile], request.folder / "spark")
    try:
        return _Run(spark, request).measure()
    finally:
        session.stop_jvm()


class _Run:
    def __init__(self, spark: SparkSession, request: Request) -> None:
        self._spark, self._request = spark, request
        self._done: list[float] = []
        self._over = threading.Event()
        self._schema = parse(SCHEMA)

    def measure(self) -> Figures:
        files = self._write_events()
        rows = [pq.read_metadata(path).num_rows for path in files]
        if self._request.fast:
            self._let_in(files, pause_s=0.0)
        queries = self._start()
        due = None if self._request.fast else self._let_in(files, seconds(self._request.epoch))
        try:
            while not self._over.wait(POLL_S):
                for query in queries:
                    failure = query.exception()
                    if failure is not None:
                        raise failure
        finally:
            for query in queries:
                query.stop()
        return measured(rows, self._done, due, self._digest())

    def _write_events(self) -> list[Path]:
        """All epochs as files beside the folder that is read."""
        request = self._request
        epoch_s = seconds(request.epoch)
        made = Events(request.rate, epoch_s, request.seed)
        reader = Generator(made.make, self._schema, rate=request.rate).open(0, 1, epoch_s)
        ready = request.folder / "ready"
        ready.mkdir(parents=True)
        self._input(0).mkdir()
        for epoch in range(request.epochs):
            pq.write_table(reader.read(epoch, None, None), ready / f"{epoch:06d}.parquet", compression="none")
        return sorted(ready.iterdir())

    def _let_in(self, files: list[Path], pause_s: float) -> list[float]:
        """Moves one file after the other to where it is read, each in one step; returns when."""
        begin = time.time()
        due = [begin + number * pause_s for number in range(len(files))]
        for path, moment in zip(files, due, strict=True):
            time.sleep(max(0.0, moment - time.time()))
            path.rename(self._input(0) / path.name)
        return due

    def _input(self, stage: int) -> Path:
        return self._request.folder / f"input-{stage}"

    def _start(self) -> list[StreamingQuery]:
        """All stages at once, each reading what the one before writes."""
        stages = QUERIES[self._request.query].stages
        queries = []
        for number, stage in enumerate(stages):
            last = number == len(stages) - 1
            if not last:
                self._input(number + 1).mkdir()
            write = self._deliver if last else self._hand_on(self._input(number + 1))
            queries.append(self._start_stage(number, stage, write))
        return queries

    def _start_stage(self, number: int, stage: Stage, write: Callable[[DataFrame, int], None]) -> StreamingQuery:
        reader = self._spark.readStream.schema(from_arrow_schema(self._schema)).option("maxFilesPerTrigger", 1)
        frame = stage.build(reader.parquet(str(self._input(number))))
        self._schema = parse(frame.schema)
        writer = frame.writeStream.outputMode(stage.output_mode).foreachBatch(write)
        return writer.option("checkpointLocation", str(self._request.folder / f"checkpoint-{number}")).start()

    def _deliver(self, frame: DataFrame, batch: int) -> None:
        frame.write.mode("overwrite").parquet(str(self._output(batch)))
        self._done.append(time.time())
        if len(self._done) == self._request.epochs:
            self._over.set()

    def _hand_on(self, folder: Path) -> Callable[[DataFrame, int], None]:
        def write(frame: DataFrame, batch: int) -> None:
            path = folder / f"_{batch:06d}.parquet"  # Spark reads no file that begins with an underscore
            pq.write_table(frame.toArrow(), path)
            path.rename(folder / path.name[1:])

        return write

    def _output(self, batch: int) -> Path:
        return self._request.folder / "output" / f"{batch:06d}"

    def _digest(self) -> str:
        """Of all that was delivered, as a sink of understudy has it."""
        epochs = []
        for epoch in range(self._request.epochs):
            files = sorted(self._output(epoch).glob("*.parquet"))
            tables = [conform(pq.read_table(path), self._schema) for path in files]
            table = pa.concat_tables(tables) if tables else self._schema.empty_table()
            epochs.append((epoch, hashing.digest(table), table.num_rows))
        return hashing.combine(epochs)


if __name__ == "__main__":
    exit_with_parent()
    print(run(Request.model_validate_json(sys.argv[1])).model_dump_json())
