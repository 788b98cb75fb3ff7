"""What the web needs of a run: something to read, something to command, something that causes faults.

`runtime/` implements these; `web/` imports nothing from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from understudy.model.events import Event
from understudy.model.messages import Receipt
from understudy.model.names import SliceId
from understudy.model.page import Plan, Prediction
from understudy.model.recovery import Scheme
from understudy.model.report import Report
from understudy.model.run import RunSpec
from understudy.model.view import NodeState, RunState


class RunReader(Protocol):
    """A run as people and programs read it. No method may block or change anything."""

    @property
    def run(self) -> RunSpec: ...

    def now(self) -> float:
        """The time of day."""
        ...

    def state(self) -> RunState: ...

    def report(self) -> Report: ...

    def plan(self) -> Plan: ...

    def predictions(self) -> tuple[Prediction, ...]: ...

    def events(self, after: int = 0, limit: int | None = None) -> list[Event]: ...

    def newest_events(self, limit: int) -> list[Event]: ...

    def event_counts(self) -> dict[str, int]: ...

    def placed_again(self) -> set[str]: ...

    def source_names(self) -> frozenset[str]: ...

    def delivered(self) -> dict[str, int]: ...

    def deliveries(self, first: Mapping[str, int]) -> list[Receipt]: ...

    def latency(self, receipt: Receipt) -> float | None: ...


class RunCommands(Protocol):
    """What people may ask of a run. `switch` and `drain` raise InvalidInput at once if it cannot be done."""

    def switch(self, slice_id: SliceId, scheme: Scheme) -> None: ...

    def drain(self, node: str, undo: bool = False) -> int: ...

    def note_fault(self, spec: str, target: str, at: float) -> int: ...

    def finish(self) -> None: ...

    def shut_down(self) -> None: ...


class NodeFaults(Protocol):
    """Causes faults of nodes. `reaches`: the node is a process of this host that is connected to the port."""

    def reaches(self, node: NodeState, port: int) -> bool: ...

    def kill(self, node: NodeState, *, jvm: bool) -> None: ...

    def freeze(self, node: NodeState, *, jvm: bool) -> None: ...

    def thaw(self, node: NodeState) -> None: ...
