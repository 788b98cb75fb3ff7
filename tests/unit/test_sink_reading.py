"""A sink slice against a real log: what it skips, what it waits for, what it reports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from tests.builders import COUNTS, OTHER, a_bag, rows_of, word_count_layout

from understudy.checkpoints.file_store import FileCheckpoints
from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.model.messages import Deploy, State
from understudy.model.names import SliceId
from understudy.model.run import Rhythm
from understudy.sinks.interface import Written
from understudy.stream.context import Goal, NodeContext
from understudy.stream.failures import Stopped
from understudy.stream.sink import SinkReplica
from understudy.stream.spark_edge import SparkEdge

OUT = SliceId("out", 0)
LAST = 5


class Target:
    """Keeps what is written; ends the replica after the last epoch."""

    def __init__(self) -> None:
        self.epochs: list[int] = []

    def open(self, *_: object) -> Target:
        return self

    def write(self, epoch: int, rows: pa.Table) -> Written:
        self.epochs.append(epoch)
        if epoch == LAST:
            raise Stopped
        return Written.ONCE

    def close(self) -> None:
        pass


@pytest.fixture
def log(tmp_path: Path) -> FileLog:
    log = FileLog(tmp_path / "log", Disk())
    for slice_id in (COUNTS, OTHER):
        for epoch in range(LAST + 1):
            log.publish(a_bag(epoch, None, slice_id), durable=False)
    return log


def sink_on(log: FileLog, tmp_path: Path, target: Target) -> SinkReplica:
    sink = SimpleNamespace(name="out", stream="counts", sink=target)
    topology: Any = SimpleNamespace(sinks=[sink], operators=[], tentative_s=None)
    schemas, layout, spark = {"counts": rows_of(0).schema}, word_count_layout(), cast(Any, None)
    context = NodeContext(
        home=tmp_path,
        local=tmp_path / "local",
        run="r",
        log=log,
        edge=SparkEdge(spark, tmp_path, Disk(), log, topology, layout, schemas, FileCheckpoints(tmp_path, Disk())),
        topology=topology,
        layout=layout,
        rhythm=Rhythm(epoch=0, time=0.0, epoch_s=1.0, fast=True),
        backlog=100,
        goal=Goal(),
    )
    return SinkReplica(context, Deploy(slice=OUT, generation=2, resume_at=1))


def run(replica: SinkReplica) -> None:
    while replica.turn() is not None:
        pass


def test_what_a_predecessor_delivered_meanwhile_is_skipped(tmp_path: Path, log: FileLog) -> None:
    """A sink that was given up had receipts for epochs 1 to 3; the manager stored them when it came back."""
    for upstream in (COUNTS, OTHER):
        log.acknowledge(OUT, upstream, 3)
    log.trim(COUNTS, [OUT])
    target = Target()
    run(sink_on(log, tmp_path, target))
    assert target.epochs == [4, 5]


def test_all_damaged_bags_are_reported_at_once(
    tmp_path: Path, log: FileLog, damaged: Callable[[SliceId, int], None]
) -> None:
    for slice_id, epoch in ((COUNTS, 2), (OTHER, 2), (OTHER, 4), (COUNTS, 0)):
        damaged(slice_id, epoch)
    log.acknowledge(OUT, COUNTS, 0)
    target = Target()
    replica = sink_on(log, tmp_path, target)
    run(replica)
    status = replica.status()
    assert status.state is State.FAILED
    assert status.failure is not None
    assert status.failure.damaged == ((COUNTS, 2), (OTHER, 2), (OTHER, 4))
    assert "3 bags are damaged" in status.failure.what
    assert target.epochs == [1]


@pytest.fixture
def damaged(tmp_path: Path) -> Callable[[SliceId, int], None]:
    def damage(slice_id: SliceId, epoch: int) -> None:
        path = tmp_path / "log" / slice_id.operator / str(slice_id.index) / f"{epoch:010d}.bag"
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)

    return damage
