"""Appends records and reads up to them: that is how a writer learns what became of what it wrote."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from understudy.log.kafka_facts import Fact
from understudy.log.kafka_order import Fate
from understudy.log.kafka_view import View
from understudy.log.kafka_wire import FACTS, Wire

RETRY_S = 0.05
Records = Iterable[tuple[bytes, bytes]]
"""Keys and values."""


class Writer:
    """Of one process. All methods may be called from several threads."""

    def __init__(self, wire: Wire, view: View) -> None:
        self._wire, self._view = wire, view
        self._name, self._numbers = secrets.token_hex(6), count()

    def token(self) -> str:
        """A name that nobody else gives."""
        return f"{self._name}-{next(self._numbers)}"

    def deadline(self) -> float:
        """When brokers that are away from now on have been waited for long enough."""
        return time.monotonic() + self._wire.patience_s

    # -- partitions of slices

    def append(self, partition: int, make: Callable[[str], Records], what: str, deadline: float) -> Fate:
        """Appends the records that `make` gives a name to, and reads up to the last of them.

        Returns
        -------
        Fate
            What became of them. `BROKEN`: they were lost on their way, and can be appended again.

        Raises
        ------
        Unavailable
            At the deadline, with `what` did not work.
        """
        writer, view = self.token(), self._view
        with view.lock:
            view.expect(writer)
        try:
            for key, value in make(writer):
                self._wire.send(partition, key, value, lambda: view.decide(writer, Fate.BROKEN))
            self.wait(lambda: view.fate(writer) is not None, what, deadline)
            with view.lock:
                fate = view.fate(writer) or Fate.BROKEN
        finally:
            with view.lock:
                view.forget(writer)
        if fate is Fate.BROKEN:
            if time.monotonic() > deadline:
                raise self._wire.away(what)
            time.sleep(RETRY_S)
        return fate

    # -- facts

    def note(self, key: tuple[Any, ...], value: Any) -> None:
        """Writes a fact; it counts for this process at once and for others when they have read it."""
        self._send(Fact(key, value, self.token()))

    def remove(self, key: tuple[Any, ...]) -> None:
        self._send(Fact(key, None, "", gone=True))

    def _send(self, fact: Fact) -> None:
        with self._view.lock:
            self._view.wrote(fact)
        self._wire.send(FACTS, fact.key_bytes, fact.value_bytes)

    def await_facts(self) -> None:
        """Waits until all facts that this process has written so far are durable and read."""
        with self._view.lock:
            pending = self._view.unread()
        self.wait(lambda: pending.isdisjoint(self._view.unread()), "facts could not be written")

    # -- waiting

    def wait(self, ready: Callable[[], bool], what: str, deadline: float | None = None) -> None:
        """Waits, under the view's lock, until something holds; raises `Unavailable` when patience has ended."""
        left = self._wire.patience_s if deadline is None else max(0.0, deadline - time.monotonic())
        if not self._view.wait(ready, left, self._wire.check):
            raise self._wire.away(what)
