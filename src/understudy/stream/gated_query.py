"""One Structured Streaming query behind its gate: started, fed, moved to a newer checkpoint, stopped."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from understudy.checkpoints.interface import Checkpoint, Marker, Watermarks
from understudy.checkpoints.spark_files import committed, forget_last_commit, last_batch
from understudy.errors import Unavailable
from understudy.stream import frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from understudy.model.topology import Operator

JUMP_MS = 5_000


@dataclass(frozen=True)
class QueryPlan:
    """What a query of a slice consists of: fused operators, and the schemas of its inputs."""

    operators: tuple[Operator, ...]
    inputs: tuple[pa.Schema, ...]


class GatedQuery:
    """`batch` gets the rows of every epoch; `ended` hears when the query ends by itself."""

    def __init__(
        self,
        spark: SparkSession,
        plan: QueryPlan,
        name: str,
        directory: Path,
        batch: Callable[[int, pa.Table], None],
        ended: Callable[[BaseException | None], None],
    ) -> None:
        self.name, self.directory = name, directory
        self.gate = frames.gate(spark, name)
        self._spark, self._plan, self._batch, self._ended = spark, plan, batch, ended
        self._spent = 0.0
        self._failed: BaseException | None = None
        self._query: StreamingQuery | None = None
        self._stopping = False
        self._favoured: bool | None = None
        self._arrived = False

    def start(self, first: int, restored: Marker | None = None) -> None:
        """Starts the query at an epoch, on the checkpoint that was restored to its directory, if there is one."""
        operators = self._plan.operators
        frame: list[DataFrame] = frames.inputs(
            self._spark, self.name, self._plan.inputs, first, strict=operators[0].order == "strict"
        )
        for operator in operators:
            frame = [operator.function(*frame)]
        if restored is not None:
            _check_watermarks(restored, frame[0], self.name)
            self.gate.startWith(_encode(restored.watermarks))
        self._query = frames.start(frame[0], self.name, operators[-1].output_mode, self.directory, self._on_batch)
        self.gate.attach(self._query._jsq)
        threading.Thread(target=self._watch, name=f"{self.name} watch", daemon=True).start()

    def _on_batch(self, frame: DataFrame, _: int) -> None:
        began = time.thread_time()
        try:
            rows = frame.toArrow()
            self._spent += time.thread_time() - began
            self._batch(int(self.gate.planned()), rows)
        except BaseException as error:
            # Spark would pass it on as text only.
            self._failed = error
            raise

    def _watch(self) -> None:
        query = self._query
        if query is None:
            return
        error: BaseException | None = None
        try:
            query.awaitTermination()
        except Exception as caught:  # noqa: BLE001 - whatever ended the query is for the replica to judge
            error = self._failed or caught
        if not self._stopping:
            self._ended(error)

    def favour(self, primary: bool) -> None:
        """Inside a node, tasks of primaries go before those of secondaries."""
        if primary is not self._favoured:
            self._favoured = primary
            self.gate.pool("primaries" if primary else "secondaries")

    def announce(self, epoch: int, lines: Sequence[str]) -> None:
        self.gate.announce(epoch, "\n".join(lines))

    @property
    def arrived(self) -> bool:
        """Whether it waits, or has waited, at its gate; before, nobody else may touch its directory."""
        self._arrived = self._arrived or bool(self.gate.arrived())
        return self._arrived

    def await_committed(self, epoch: int, millis: int) -> bool:
        return int(self.gate.awaitCommitted(epoch, millis)) >= epoch

    def watermarks(self, epoch: int) -> Watermarks:
        """Those of the inputs as of an epoch that was committed a moment ago."""
        found = self.gate.watermarks(epoch)
        if found is None:
            raise Unavailable(
                f"the watermarks of {self.name} as of epoch {epoch} are not known",
                why="the query has gone far beyond that epoch",
                fix="nothing: the next checkpoint has them",
            )
        return _decode(found)

    def jump(self, marker: Marker, *, keep_state: bool) -> bool:
        """Lets the waiting query go on from the checkpoint in its directory; False if it did not come to it."""
        return bool(self.gate.jump(last_batch(marker), _encode(marker.watermarks), keep_state, JUMP_MS))

    @property
    def state_loaded(self) -> bool:
        return bool(self.gate.loaded())

    @property
    def state_rows(self) -> int:
        """As of the last time it was asked for: they are counted when no batch runs."""
        return int(self.gate.stateRows())

    @property
    def cpu_s(self) -> float:
        return self._spent + int(self.gate.cpuNanos()) / 1e9

    def checkpoint(self) -> Checkpoint | None:
        """The newest committed checkpoint in its directory, without the watermarks of its inputs."""
        return committed(self.directory)

    def forget_last_commit(self) -> int | None:
        """Lets the query run its last batch again when it starts; returns the epoch of that batch."""
        return forget_last_commit(self.directory)

    def progress(self) -> Any:
        return self._query.lastProgress if self._query is not None else None

    def stop(self) -> None:
        self._stopping = True
        if self._query is not None:
            self._query.stop()
        frames.remove_gate(self._spark, self.name)
        shutil.rmtree(self.directory, ignore_errors=True)


def _check_watermarks(marker: Marker, frame: DataFrame, name: str) -> None:
    count = frames.watermarks(frame) if marker.watermarks is None else 0
    if count > 1:
        raise Unavailable(
            f"the checkpoint of {name} does not hold the watermarks of its inputs",
            why=f"the operator has {count} of them, and a version that kept none has shipped the checkpoint",
            fix="run again in a new --home",
        )


def _encode(watermarks: Watermarks | None) -> str:
    return ",".join("-" if mark is None else str(mark) for mark in watermarks or ())


def _decode(text: str) -> Watermarks:
    return tuple(None if mark == "-" else int(mark) for mark in text.split(",") if mark)
