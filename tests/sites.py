"""A node without Spark: enough for replicas of sources and sinks, on a real log."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from understudy.checkpoints.file_store import FileCheckpoints
from understudy.control.application.fusion import lay_out
from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.model.messages import Deploy
from understudy.model.names import SliceId
from understudy.model.run import Rhythm
from understudy.model.topology import Topology
from understudy.stream.context import Goal, NodeContext
from understudy.stream.replica import Replica
from understudy.stream.spark_edge import SparkEdge


def a_context(
    home: Path,
    topology: Topology,
    disk: Disk | None = None,
    epochs: int | None = None,
    schemas: dict[str, Any] | None = None,
    **more: Any,
) -> NodeContext:
    """Epochs are as fast as they can be; `epochs` is the goal."""
    disk = disk or Disk()
    layout = more.pop("layout", None) or lay_out(topology, {op.name: False for op in topology.operators})
    schemas = schemas or {source.name: source.source.schema for source in topology.sources}
    log = FileLog(home / "log", disk)
    spark: Any = None
    shipped = FileCheckpoints(home / "checkpoints", disk)
    options: dict[str, Any] = {
        "home": home,
        "local": home / "local",
        "run": "run-1",
        "log": log,
        "edge": SparkEdge(spark, home, disk, log, topology, layout, schemas, shipped),
        "topology": topology,
        "layout": layout,
        "rhythm": Rhythm(epoch=0, time=0.0, epoch_s=topology.epoch_s, fast=True),
        "backlog": 10**6,
        "goal": Goal(epochs),
    }
    return NodeContext(**options | more)


def run_until(replica: Replica, done: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Lets a replica take its turns until something is so, stops it, and raises what made it fail."""
    deadline = time.monotonic() + timeout_s
    while not done() and (seconds := replica.turn()) is not None:
        assert time.monotonic() < deadline, f"{replica} did not get there: {replica.status()}"
        time.sleep(min(seconds, 0.002))
    replica.stop()
    replica.turn()
    failure = replica.status().failure
    if failure is not None:
        raise AssertionError(str(failure))


def until(done: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.002)


def deployed(slice_id: SliceId, generation: int = 1, **more: Any) -> Deploy:
    return Deploy(slice=slice_id, generation=generation, **more)
