"""Events in order, indexed by kind, by what they are about, and by cause."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar, cast

from understudy.model.events import Event, Happening, Unknown

What = TypeVar("What", bound=Happening)


class Told(Generic[What]):
    """An event whose record has a known type."""

    def __init__(self, event: Event) -> None:
        self.number, self.at, self.cause, self.text = event.number, event.at, event.cause, event.text
        self.what = cast(What, event.what)


class Line(Generic[What]):
    """Events of one kind in the order of their numbers. A clock that was set back does not change their order."""

    def __init__(self) -> None:
        self.events: list[Told[What]] = []
        self._times: list[float] = []

    def add(self, event: Told[What]) -> None:
        self.events.append(event)
        self._times.append(max(event.at, self._times[-1]) if self._times else event.at)

    def last_by(self, at: float) -> Told[What] | None:
        position = bisect_right(self._times, at)
        return self.events[position - 1] if position else None

    def first_from(self, at: float) -> Told[What] | None:
        position = bisect_left(self._times, at)
        return self.events[position] if position < len(self.events) else None

    def last_before(self, number: int) -> Told[What] | None:
        position = bisect_left(self.events, number, key=lambda event: event.number)
        return self.events[position - 1] if position else None

    def after(self, number: int) -> Iterator[Told[What]]:
        for position in range(bisect_right(self.events, number, key=lambda event: event.number), len(self.events)):
            yield self.events[position]


class Chronicle:
    """Made once from events in the order of their numbers; a look-up does not go through all of them.

    Events that this version cannot read are left out.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self._by_number: dict[int, tuple[str, Told[Happening]]] = {}
        self._lines: dict[tuple[str, str | None], Line[Happening]] = {}
        for event in events:
            self._add(event)

    def _add(self, event: Event) -> None:
        if isinstance(event.what, Unknown):
            return
        told: Told[Happening] = Told(event)
        self._by_number[event.number] = (event.kind, told)
        for about in {None, event.fields.get("slice", event.fields.get("node"))}:
            self._lines.setdefault((event.kind, about), Line()).add(told)

    def get(self, number: int | None) -> Told[Happening] | None:
        return None if number is None or number not in self._by_number else self._by_number[number][1]

    def get_of(self, record: type[What], number: int | None) -> Told[What] | None:
        """The event of this number, if it is of this kind."""
        kind, told = self._by_number.get(number or 0, ("", None))
        return cast("Told[What]", told) if told is not None and kind == record.kind else None

    def of(self, record: type[What]) -> Sequence[Told[What]]:
        return self.line(record).events

    def line(self, record: type[What], about: str | None = None) -> Line[What]:
        """Events of a kind: all of them, or those about a slice or, if they name none, about a node."""
        return cast("Line[What]", self._lines.get((record.kind, about)) or Line())

    def causes(self, event: Told[What]) -> Iterator[Told[Happening]]:
        """Upwards, as far as they are kept; causes have smaller numbers, so this ends."""
        cause = self.get(event.cause)
        while cause is not None:
            yield cause
            cause = self.get(cause.cause)

    def first_between(
        self, record: type[What], about: str | None, since: float, until: float = math.inf
    ) -> Told[What] | None:
        """The first event of a kind from a moment on and before another."""
        found = self.line(record, about).first_from(since)
        return found if found is not None and found.at < until else None
