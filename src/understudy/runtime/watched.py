"""What the manager tells those who look, beside its state: the plan, deliveries, and which nodes are draining."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from understudy.control.graph import plan_of
from understudy.control.report import Report
from understudy.errors import InvalidInput
from understudy.model.event import Event
from understudy.model.layout import Layout
from understudy.model.messages import Hello, Receipt
from understudy.model.page import Plan, Prediction
from understudy.model.run import Rhythm, RunSpec
from understudy.model.topology import Topology
from understudy.model.view import RunState
from understudy.runtime.connection import Connection
from understudy.store.interface import StateStore


class Watched(ABC):
    """Reads what the manager keeps; the dashboard, metrics and commands need nothing else of it."""

    run: RunSpec
    _home: Path
    _topology: Topology
    _layout: Layout | None
    _store: StateStore
    _rhythm: Rhythm | None
    _wall: Callable[[], float]
    _connections: dict[str, Connection]

    @abstractmethod
    def state(self) -> RunState: ...

    @abstractmethod
    def report(self) -> Report: ...

    @abstractmethod
    def events(self, after: int = 0) -> list[Event]: ...

    @abstractmethod
    def note(self, kind: str, text: str, fields: dict[str, Any], cause: int | None = None) -> int: ...

    @property
    def nodes_directory(self) -> Path:
        return self._home / "nodes"

    def now(self) -> float:
        return self._wall()

    def plan(self) -> Plan:
        return plan_of(self._topology, self._layout).model_copy(update={"slices": self.state().slices})

    def source_names(self) -> frozenset[str]:
        return frozenset(source.name for source in self._topology.sources)

    def predictions(self) -> tuple[Prediction, ...]:
        """What the controller expects; nobody predicts anything yet."""
        return ()

    def deliveries(self, first: Mapping[str, int]) -> list[Receipt]:
        """Receipts of every sink from an epoch on."""
        sinks = [sink.name for sink in self._topology.sinks]
        return [receipt for sink in sinks for receipt in self._store.receipts(sink, first.get(sink, 0))]

    def latency(self, receipt: Receipt) -> float | None:
        """From the moment the epoch was due to its delivery; a fast run has no such moments."""
        rhythm = self._rhythm
        if rhythm is None or rhythm.fast or receipt.epoch < rhythm.epoch:
            return None
        return max(0.0, receipt.at - rhythm.due(receipt.epoch))

    # -- draining

    def drain(self, node: str, undo: bool = False) -> int:
        """Marks a node: nothing new comes to it, and what it hosts moves away."""
        connection = self._connections.get(node)
        if connection is None or connection.hello is None:
            raise InvalidInput(
                f"there is no node {node}",
                why=f"the nodes of this run are {', '.join(sorted(self._connections)) or 'none'}",
                fix="name one of them",
            )
        kept: dict[str, int] = self._store.fact("draining") or {}
        kept = {name: pid for name, pid in kept.items() if name != node}
        self._store.keep({"draining": kept if undo else kept | {node: connection.hello.pid}})
        connection.draining = not undo
        text = f"{node} takes slices again" if undo else f"{node} is being drained"
        return self.note("drain", text, {"node": node, "undo": undo})

    def is_draining(self, hello: Hello) -> bool:
        """By process: a node that was started anew under its old name may work again."""
        return bool((self._store.fact("draining") or {}).get(hello.node) == hello.pid)
