"""Secondaries that were woken: since when, what that has cost, and whether it was of any use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from understudy.model.messages import ReplicaStatus
from understudy.model.names import SliceId

PRICES = ("cpu_s", "bytes_received", "bytes_published", "bytes_shipped")


@dataclass(frozen=True)
class Woken:
    """`event` tells why it was woken, `before` is how it was then."""

    event: int
    at: float
    before: ReplicaStatus
    useful: bool = False

    def has_made_something(self, now: ReplicaStatus) -> bool:
        return now.generation == self.before.generation and now.first_bags > self.before.first_bags


class StandIns:
    def __init__(self) -> None:
        self._woken: dict[SliceId, Woken] = {}

    def wake(self, event: int, secondary: ReplicaStatus, now: float) -> None:
        self._woken[secondary.slice] = Woken(event, now, secondary)

    def stands_in(self, replica: ReplicaStatus) -> int | None:
        """Why this secondary was woken, if it has just made the first bag that nobody else had made."""
        woken = self._woken.get(replica.slice)
        if woken is None or woken.useful or not woken.has_made_something(replica):
            return None
        self._woken[replica.slice] = replace(woken, useful=True)
        return woken.event

    def forget(self, slice_id: SliceId) -> bool:
        """It is the primary now, or given up; answers whether it was standing in."""
        return self._woken.pop(slice_id, None) is not None

    def sleep(self, secondary: ReplicaStatus, now: float) -> tuple[int | None, dict[str, Any]]:
        """Why it was woken, and what that has cost. It was a false alarm if nothing new came of it."""
        woken = self._woken.pop(secondary.slice, None)
        if woken is None:
            return None, {}
        useful = woken.useful or woken.has_made_something(secondary)
        spent = {name: round(getattr(secondary, name) - getattr(woken.before, name), 3) for name in PRICES}
        return woken.event, {"stood_in_s": round(now - woken.at, 3), "false_alarm": not useful, **spent}
