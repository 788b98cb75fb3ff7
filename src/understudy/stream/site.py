"""What the replicas on a node share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from understudy.control.schemes.overload import throttle
from understudy.log.disk import Disk
from understudy.log.interface import Log
from understudy.model.config import DEFAULTS, OverloadSection, ShippingSection
from understudy.model.layout import Kind, Layout
from understudy.model.names import SliceId
from understudy.model.run import Rhythm
from understudy.model.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Goal:
    """The number of epochs to process, unknown (None) until someone sets it."""

    def __init__(self, epochs: int | None = None) -> None:
        self._epochs = epochs
        self._changed = threading.Condition()

    def set(self, epochs: int) -> None:
        with self._changed:
            self._epochs = epochs
            self._changed.notify_all()

    @property
    def epochs(self) -> int | None:
        return self._epochs

    def reached(self, epoch: int) -> bool:
        return self._epochs is not None and epoch >= self._epochs


class Crowd:
    """How far the primaries of a node are behind, for those who only stand by. Used by many threads."""

    def __init__(self, limits: OverloadSection = DEFAULTS.overload, *, on: bool = True) -> None:
        self._on, self._limits = on, limits
        self._behind: dict[SliceId, int] = {}
        self._throttled = False
        self._lock = threading.Lock()

    def see(self, primary: SliceId, behind: int) -> None:
        with self._lock:
            self._behind[primary] = behind
            self._throttled = self._on and throttle(self._throttled, self._behind.values(), self._limits)

    def leave(self, primary: SliceId) -> None:
        with self._lock:
            self._behind.pop(primary, None)
            self._throttled = self._on and throttle(self._throttled, self._behind.values(), self._limits)

    @property
    def crowded(self) -> bool:
        return self._throttled


@dataclass(frozen=True)
class Site:
    """`home` is durable and shared by all nodes, `local` is fast and this node's own. `rhythm` is told by `clock`."""

    home: Path
    local: Path
    run: str
    spark: SparkSession
    log: Log
    disk: Disk
    topology: Topology
    layout: Layout
    schemas: Mapping[str, pa.Schema]
    rhythm: Rhythm
    backlog: int
    clock: Callable[[], float] = time.monotonic
    goal: Goal = field(default_factory=Goal)
    crowd: Crowd = field(default_factory=Crowd)
    shipping: ShippingSection = DEFAULTS.shipping

    @property
    def checkpoints(self) -> Path:
        return self.home / "checkpoints"

    def released(self, slice_id: SliceId) -> int:
        """The newest epoch of a slice that all its readers have acknowledged, -1 if there is none."""
        return self.log.floor(slice_id, self.layout.readers(slice_id))

    def room(self, slice_id: SliceId, epoch: int) -> bool:
        """Whether this slice may work on an epoch: nobody runs too far ahead of those who read from it."""
        behind = epoch - self.backlog
        return behind < 0 or all(self._progress(reader) >= behind for reader in self.layout.readers(slice_id))

    def _progress(self, reader: SliceId) -> int:
        """Not by acknowledgements: they need the manager, and data flows on while it is away."""
        sink = self.layout[reader.operator].kind is Kind.SINK
        return self.log.reached(reader) if sink else self.log.newest(reader)
