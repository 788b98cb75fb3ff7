"""What the manager must not forget, in memory: a `StateStore` that a restarted manager of a simulated cluster finds.

Values come back as they would from a file: what was kept is read from its JSON.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from understudy.model.events import COUNT, SUMMED, Event
from understudy.model.messages import Receipt
from understudy.model.run import Rhythm
from understudy.model.snapshot import Assignment
from understudy.model.tally import Tally, take

_ASSIGNMENT = TypeAdapter(Assignment)


@dataclass
class Delivered:
    """What is known of one sink. `twice` are the epochs that were written twice."""

    receipts: dict[int, Receipt] = field(default_factory=dict)
    twice: set[int] = field(default_factory=set)
    tally: Tally = field(default_factory=Tally)
    delays: Counter[int] = field(default_factory=Counter)

    def add(self, receipt: Receipt) -> None:
        known = self.receipts.get(receipt.epoch)
        if known is None:
            self.receipts[receipt.epoch] = receipt
        afresh = known is not None and known.fresh and receipt.fresh and known.at != receipt.at
        if receipt.repeated or afresh:
            self.twice.add(receipt.epoch)

    def advance(self, rhythm: Rhythm | None) -> None:
        taken = take(self.tally, self._unbroken(), rhythm)
        if taken.tally.epochs > self.tally.epochs:
            if taken.anew:
                self.delays.clear()
            self.delays.update(taken.delays)
        self.tally = replace(taken.tally, duplicates=sum(epoch < taken.tally.epochs for epoch in self.twice))

    def _unbroken(self) -> Iterator[Receipt]:
        epoch = self.tally.epochs
        while epoch in self.receipts:
            yield self.receipts[epoch]
            epoch += 1


class MemoryStore:
    """A `StateStore`. It keeps everything: a simulated run is short."""

    def __init__(self) -> None:
        self._facts: dict[str, str] = {}
        self._assignments: dict[str, Assignment] = {}
        self._sinks: defaultdict[str, Delivered] = defaultdict(Delivered)
        self._events: list[tuple[float, str, str, Mapping[str, Any], int | None]] = []
        self._latest: dict[str, dict[str, int]] = {}
        self._totals: dict[str, dict[str, float]] = {}

    # -- facts and assignments

    def fact(self, name: str) -> Any:
        kept = self._facts.get(name)
        return None if kept is None else json.loads(kept)

    def keep(self, facts: Mapping[str, Any]) -> None:
        self._facts |= {name: json.dumps(value) for name, value in facts.items()}

    def assignments(self) -> tuple[Assignment, ...]:
        kept = [self._assignments[name] for name in sorted(self._assignments)]
        return tuple(_ASSIGNMENT.validate_json(_ASSIGNMENT.dump_json(one)) for one in kept)

    def assign(self, assignment: Assignment) -> None:
        self._assignments[str(assignment.slice)] = assignment

    # -- receipts

    def receive(self, given: Iterable[Receipt], rhythm: Rhythm | None = None) -> None:
        changed = set()
        for receipt in given:
            self._sinks[receipt.sink].add(receipt)
            changed.add(receipt.sink)
        for sink in changed:
            self._sinks[sink].advance(rhythm)

    def receipts(self, sink: str, first: int = 0) -> list[Receipt]:
        kept = self._sinks[sink].receipts
        return [kept[epoch].model_copy(update={"repeated": False}) for epoch in sorted(kept) if epoch >= first]

    def tally(self, sink: str) -> Tally:
        return self._sinks[sink].tally

    def delays(self, sink: str) -> dict[int, int]:
        return dict(self._sinks[sink].delays)

    def epochs_with_loss(self, sink: str) -> list[int]:
        return sorted(epoch for epoch, receipt in self._sinks[sink].receipts.items() if receipt.lost)

    def duplicates(self, sink: str) -> int:
        return len(self._sinks[sink].twice)

    def delivered(self, sink: str) -> int:
        return self._sinks[sink].tally.epochs

    # -- events

    def note(self, at: float, kind: str, text: str, fields: Mapping[str, Any], cause: int | None) -> int:
        self._events.append((at, kind, text, fields, cause))
        number, totals = len(self._events), self._totals.setdefault(kind, {})
        for name, value in [(COUNT, 1.0), *((name, float(fields.get(name) or 0)) for name in SUMMED.get(kind, ()))]:
            totals[name] = totals.get(name, 0.0) + value
        if fields.get("slice") is not None:
            self._latest.setdefault(kind, {})[str(fields["slice"])] = number
        return number

    def _event(self, number: int) -> Event:
        at, kind, text, fields, cause = self._events[number - 1]
        read = json.loads(json.dumps(fields))
        return Event.model_construct(number=number, at=at, kind=kind, text=text, fields=read, cause=cause)

    def events(self, after: int = 0, limit: int | None = None) -> list[Event]:
        found = range(max(0, after) + 1, len(self._events) + 1)
        return [self._event(number) for number in (found if limit is None else found[:limit])]

    def newest_events(self, limit: int, kinds: Collection[str] | None = None) -> list[Event]:
        found = range(max(0, len(self._events) - limit) + 1, len(self._events) + 1)
        return [self._event(number) for number in found if kinds is None or self._events[number - 1][1] in kinds]

    def latest(self, kind: str) -> dict[str, Event]:
        return {name: self._event(number) for name, number in sorted(self._latest.get(kind, {}).items())}

    def latest_number(self, kinds: Iterable[str], slice_name: str) -> int | None:
        found = [self._latest.get(kind, {}).get(slice_name) for kind in kinds]
        return max((number for number in found if number is not None), default=None)

    def totals(self) -> dict[str, dict[str, float]]:
        return {kind: dict(sums) for kind, sums in self._totals.items()}
