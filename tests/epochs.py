"""Runs the function of an operator on Spark, epoch by epoch, through the source that nodes use."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from understudy.log import bag
from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.model.entries import OutputMode
from understudy.model.layout import Channel, Split
from understudy.model.names import SliceId
from understudy.stream import frames

Rows = list[dict[str, Any]]


class EpochRun:
    """One query over epochs that are announced all at once; ended by `rows`."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        build: Callable[..., DataFrame],
        inputs: Sequence[Sequence[pa.Table]],
        mode: OutputMode = "append",
    ) -> None:
        self._spark = spark
        self._name = f"run-{uuid.uuid4().hex[:8]}"
        self._batches: dict[int, Rows] = {}
        self._arrived = threading.Condition()
        self._gate = frames.gate(spark, self._name)
        streams = frames.inputs(spark, self._name, [tables[0].schema for tables in inputs])
        self._query = frames.start(build(*streams), self._name, mode, folder / f"{self._name}.checkpoint", self._batch)
        self._epochs = len(inputs[0])
        self._announce(FileLog(folder / self._name, Disk()), inputs)

    def _announce(self, log: FileLog, inputs: Sequence[Sequence[pa.Table]]) -> None:
        for epoch in range(self._epochs):
            lines: list[str] = []
            for number, tables in enumerate(inputs):
                upstream = SliceId(f"input{number}", 0)
                stored = log.publish(bag.make(upstream, epoch, tables[epoch], ()), durable=False).stored
                lines += stored.lines(Channel(number, upstream, Split(), 0))
            self._gate.announce(epoch, "\n".join(lines))

    def _batch(self, frame: DataFrame, _: int) -> None:
        with self._arrived:
            self._batches[int(self._gate.planned())] = frame.toArrow().to_pylist()
            self._arrived.notify_all()

    def rows(self) -> list[Rows]:
        """What every epoch emitted, in Spark's order."""
        with self._arrived:
            done = self._arrived.wait_for(lambda: len(self._batches) == self._epochs or self._query.exception(), 240)
        failure = self._query.exception()
        self._query.stop()
        frames.remove_gate(self._spark, self._name)
        assert failure is None, failure
        assert done, f"only {sorted(self._batches)} of {self._epochs} epochs"
        return [self._batches[epoch] for epoch in range(self._epochs)]
