"""What the replicas on a node share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from understudy.control.schemes.overload import throttle
from understudy.log.interface import Log
from understudy.model.config import DEFAULTS, OverloadSection, ShippingSection
from understudy.model.layout import Kind, Layout
from understudy.model.names import SliceId
from understudy.model.run import Rhythm
from understudy.model.topology import Topology
from understudy.stream.edge import Edge


class Goal:
    """The number of epochs to process, unknown (None) until the manager has said it."""

    def __init__(self, epochs: int | None = None) -> None:
        self.epochs = epochs

    def reached(self, epoch: int) -> bool:
        return self.epochs is not None and epoch >= self.epochs


class NodeLoad:
    """How far the primaries of a node are behind, for the secondaries beside them. Used by many threads."""

    def __init__(self, limits: OverloadSection = DEFAULTS.overload, *, counts: bool = True) -> None:
        self._limits, self._counts = limits, counts
        self._behind: dict[SliceId, int] = {}
        self._crowded = False
        self._lock = threading.Lock()

    def see(self, primary: SliceId, behind: int) -> None:
        with self._lock:
            self._behind[primary] = behind
            self._crowded = self._counts and throttle(self._crowded, self._behind.values(), self._limits)

    def leave(self, primary: SliceId) -> None:
        with self._lock:
            self._behind.pop(primary, None)
            self._crowded = self._counts and throttle(self._crowded, self._behind.values(), self._limits)

    @property
    def crowded(self) -> bool:
        return self._crowded


@dataclass(frozen=True)
class NodeContext:
    """`home` is durable and shared by all nodes, `local` is this node's own directory.

    `clock` is monotonic and tells the `rhythm`; `wall` is the time of day, for what is written down; `thread_cpu` is
    the CPU time of whoever asks. `edge` is whatever does the work: Spark and files on a node, values in memory in the
    simulated cluster.
    """

    home: Path
    local: Path
    run: str
    log: Log
    edge: Edge
    topology: Topology
    layout: Layout
    rhythm: Rhythm
    backlog: int
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    thread_cpu: Callable[[], float] = time.thread_time
    goal: Goal = field(default_factory=Goal)
    load: NodeLoad = field(default_factory=NodeLoad)
    shipping: ShippingSection = DEFAULTS.shipping

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
