"""What the manager must not forget. A new store is one file in this folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from understudy.model.events import Event
from understudy.model.messages import Receipt
from understudy.model.run import Rhythm
from understudy.model.snapshot import Assignment
from understudy.model.tally import Tally


class StateStore(Protocol):
    """Every call is one transaction: it happened, or it did not. None may take longer because the run is older."""

    def fact(self, name: str) -> Any:
        """A JSON value kept under a name, or None."""
        ...

    def keep(self, facts: Mapping[str, Any]) -> None: ...

    def assignments(self) -> tuple[Assignment, ...]: ...

    def assign(self, assignment: Assignment) -> None: ...

    def receive(self, given: Iterable[Receipt], rhythm: Rhythm | None = None) -> None:
        """Keeps receipts; one that is known already counts as a duplicate if the sink wrote the epoch afresh.

        Epochs that leave no gap are taken into the tally of their sink, and their delays are counted against the
        rhythm.
        """
        ...

    def receipts(self, sink: str, first: int = 0) -> list[Receipt]:
        """In epoch order, one per epoch, from an epoch on. Of the earlier epochs only the newest are kept."""
        ...

    def tally(self, sink: str) -> Tally:
        """All epochs that were delivered from the first on without a gap, in a few numbers."""
        ...

    def delays(self, sink: str) -> dict[int, int]:
        """How many epochs of the tally came how late, by bucket (`model/tally.py`)."""
        ...

    def epochs_with_loss(self, sink: str) -> list[int]:
        """Epochs that were delivered with a gap in them; all of the run."""
        ...

    def duplicates(self, sink: str) -> int:
        """Epochs that were written twice; all of the run."""
        ...

    def delivered(self, sink: str) -> int:
        """How many epochs were delivered from the first on without a gap."""
        ...

    def note(self, at: float, kind: str, text: str, fields: Mapping[str, Any], cause: int | None) -> int: ...

    def events(self, after: int = 0, limit: int | None = None) -> list[Event]:
        """The next events with a higher number, as far as they are kept."""
        ...

    def newest_events(self, limit: int, kinds: Collection[str] | None = None) -> list[Event]:
        """The last ones, in their order; of these, only some kinds if they are named."""
        ...

    def latest(self, kind: str) -> dict[str, Event]:
        """The last event of a kind about every slice, however old it is."""
        ...

    def latest_number(self, kinds: Iterable[str], slice_name: str) -> int | None:
        """The number of the last event of these kinds about a slice, however old it is."""
        ...

    def totals(self) -> dict[str, dict[str, float]]:
        """Of all events of the run, by kind: their number under `COUNT`, and the sums of the fields in `SUMMED`."""
        ...
