"""The edge of a node: Spark, files and threads. `edge.py` says what replicas ask of it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from understudy.checkpoints.interface import Checkpoints, CheckpointStore
from understudy.log import bag
from understudy.log.bag import Bag
from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.log.interface import Log
from understudy.log.spool import Spool
from understudy.model import schema
from understudy.model.layout import Layout
from understudy.model.names import SliceId
from understudy.model.topology import Topology
from understudy.stream.bag_reader import BagReader
from understudy.stream.gated_query import GatedQuery, QueryPlan
from understudy.stream.tentative import TentativeCopies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from understudy.model.topology import Operator
    from understudy.stream.edge import Signal


@dataclass(frozen=True)
class SparkEdge:
    """`schemas` are those of what every vertex emits. Bags of tentative branches, and what was written tentatively, lie
    under the home."""

    spark: SparkSession
    home: Path
    disk: Disk
    log: Log
    topology: Topology
    layout: Layout
    schemas: Mapping[str, pa.Schema]
    checkpoints: Checkpoints

    @property
    def branches(self) -> Path:
        return self.home / "branches"

    @property
    def tentative(self) -> Path:
        return self.home / "tentative"

    def query(
        self,
        slice_id: SliceId,
        name: str,
        directory: Path,
        batch: Callable[[int, pa.Table], None],
        ended: Callable[[BaseException | None], None],
    ) -> GatedQuery:
        return GatedQuery(self.spark, self._plan(slice_id.operator), name, directory, batch, ended)

    def _plan(self, operator: str) -> QueryPlan:
        vertex = self.layout[operator]
        return QueryPlan(
            operators=tuple(self._operators[part] for part in vertex.parts),
            inputs=tuple(self.schemas[edge.upstream] for edge in vertex.edges),
        )

    @cached_property
    def _operators(self) -> dict[str, Operator]:
        return {operator.name: operator for operator in self.topology.operators}

    def store(self, slice_id: SliceId) -> CheckpointStore:
        return self.checkpoints.of(slice_id)

    def reader(self, slice_id: SliceId, directory: Path) -> BagReader:
        vertex, channels = self.layout[slice_id.operator], self.layout.channels(slice_id)
        first = self._operators[vertex.parts[0]] if vertex.parts else None
        order_by = first.time if first is not None and first.order == "strict" else None
        inputs = [self.schemas[edge.upstream] for edge in vertex.edges]
        return BagReader(self.log, channels, inputs, directory, order_by)

    def spool(self, directory: Path) -> Spool:
        return Spool(directory, self.disk)

    def bag(self, slice_id: SliceId, epoch: int, rows: pa.Table, lost: tuple[str, ...] = ()) -> Bag:
        conformed = schema.conform(rows, self.schemas[slice_id.operator])
        return bag.make(slice_id, epoch, conformed, self.layout.splits(slice_id.operator), lost)

    def empty(self, operator: str) -> pa.Table:
        return self.schemas[operator].empty_table()

    def signal(self) -> threading.Event:
        return threading.Event()

    def spawn(self, name: str, turn: Callable[[], float | None], signal: Signal) -> Callable[[], None]:
        def work() -> None:
            while (seconds := turn()) is not None:
                if seconds > 0:
                    signal.wait(seconds)
                signal.clear()

        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread.join

    def remove(self, directory: Path) -> None:
        shutil.rmtree(directory, ignore_errors=True)

    def branch_log(self, number: int) -> FileLog:
        for directory in self.branches.glob("[0-9]*"):
            if int(directory.name) < number:
                self.remove(directory)
        return FileLog(self.branches / str(number), self.disk)

    def drop_branch(self, number: int) -> None:
        self.remove(self.branches / str(number))

    def over(self, log: Log) -> SparkEdge:
        return replace(self, log=log)

    def copies(self, sink: str) -> TentativeCopies:
        return TentativeCopies(self.tentative / sink, self.disk)
