"""A site without Spark: enough for replicas of sources and sinks, on a real log."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from understudy.control.application.fusion import lay_out
from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.model.messages import Deploy
from understudy.model.names import SliceId
from understudy.model.run import Rhythm
from understudy.model.topology import Topology
from understudy.stream.replica import Replica
from understudy.stream.site import Goal, Site


def a_site(home: Path, topology: Topology, disk: Disk | None = None, epochs: int | None = None, **more: Any) -> Site:
    """Epochs are as fast as they can be; `epochs` is the goal."""
    disk = disk or Disk()
    options: dict[str, Any] = {
        "home": home,
        "local": home / "local",
        "run": "run-1",
        "spark": None,
        "log": FileLog(home / "log", disk),
        "disk": disk,
        "topology": topology,
        "layout": lay_out(topology, {operator.name: False for operator in topology.operators}),
        "schemas": {source.name: source.source.schema for source in topology.sources},
        "rhythm": Rhythm(epoch=0, time=0.0, epoch_s=topology.epoch_s, fast=True),
        "backlog": 10**6,
        "goal": Goal(epochs),
    }
    return Site(**options | more)


def run_until(replica: Replica, done: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Starts a replica, stops it when something is so, and raises what made it fail."""
    replica.start()
    deadline = time.monotonic() + timeout_s
    while not done() and replica.status().failure is None:
        assert time.monotonic() < deadline, f"{replica} did not get there: {replica.status()}"
        time.sleep(0.002)
    replica.stop()
    replica.join(timeout_s)
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
