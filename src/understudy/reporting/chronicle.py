"""Events in order, with what is looked for again and again found at once."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from understudy.model.event import Event


class Line:
    """Events of one kind in the order of their numbers. A clock that was set back does not change their order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._times: list[float] = []

    def add(self, event: Event) -> None:
        self.events.append(event)
        self._times.append(max(event.at, self._times[-1]) if self._times else event.at)

    def last_by(self, at: float) -> Event | None:
        position = bisect_right(self._times, at)
        return self.events[position - 1] if position else None

    def first_from(self, at: float) -> Event | None:
        position = bisect_left(self._times, at)
        return self.events[position] if position < len(self.events) else None

    def last_before(self, number: int) -> Event | None:
        position = bisect_left(self.events, number, key=lambda event: event.number)
        return self.events[position - 1] if position else None

    def after(self, number: int) -> Iterator[Event]:
        for position in range(bisect_right(self.events, number, key=lambda event: event.number), len(self.events)):
            yield self.events[position]


class Chronicle:
    """Made once from events in the order of their numbers; a look-up does not go through all of them."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._by_number: dict[int, Event] = {}
        self._by_cause: dict[int, list[Event]] = {}
        self._lines: dict[tuple[str, str | None], Line] = {}
        for event in events:
            self._add(event)

    def _add(self, event: Event) -> None:
        self._by_number[event.number] = event
        if event.cause is not None:
            self._by_cause.setdefault(event.cause, []).append(event)
        for about in {None, event.fields.get("slice", event.fields.get("node"))}:
            self._lines.setdefault((event.kind, about), Line()).add(event)

    def get(self, number: int | None) -> Event | None:
        return None if number is None else self._by_number.get(number)

    def of(self, kind: str) -> Sequence[Event]:
        return self.line(kind).events

    def line(self, kind: str, about: str | None = None) -> Line:
        """Events of a kind: all of them, or those about a slice or, if they name none, about a node."""
        return self._lines.get((kind, about)) or Line()

    def caused_by(self, number: int) -> Sequence[Event]:
        return self._by_cause.get(number, ())

    def first_between(self, kind: str, about: str | None, since: float, until: float = math.inf) -> Event | None:
        """The first event of a kind from a moment on and before another."""
        found = self.line(kind, about).first_from(since)
        return found if found is not None and found.at < until else None
