"""What the manager must not forget. A new store is one file in this folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from understudy.model.event import Event
from understudy.model.messages import Receipt
from understudy.model.snapshot import Assignment


class StateStore(Protocol):
    """Every call is one transaction: it happened, or it did not."""

    def fact(self, name: str) -> Any:
        """A JSON value kept under a name, or None."""
        ...

    def keep(self, facts: Mapping[str, Any]) -> None: ...

    def assignments(self) -> tuple[Assignment, ...]: ...

    def assign(self, assignment: Assignment) -> None: ...

    def receive(self, receipts: Iterable[Receipt]) -> None:
        """Keeps receipts; one that is known already counts as a duplicate if the sink wrote the epoch afresh."""
        ...

    def receipts(self, sink: str, first: int = 0) -> list[Receipt]:
        """In epoch order, one per epoch, from an epoch on."""
        ...

    def duplicates(self, sink: str) -> int: ...

    def delivered(self, sink: str) -> int:
        """How many epochs were delivered from the first on without a gap."""
        ...

    def note(self, at: float, kind: str, text: str, fields: Mapping[str, Any], cause: int | None) -> int: ...

    def events(self, after: int = 0) -> list[Event]: ...
