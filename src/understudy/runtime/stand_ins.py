"""Secondaries that stand in for their primary: since when, what that has cost, and whether it was of any use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from understudy.model.messages import ReplicaStatus
from understudy.model.names import SliceId

PRICES = ("cpu_s", "bytes_received", "bytes_published", "bytes_shipped")


@dataclass(frozen=True)
class StandIn:
    """`event` tells why it stands in, `before` is its status at that moment."""

    event: int
    at: float
    before: ReplicaStatus
    useful: bool = False

    def has_made_something(self, now: ReplicaStatus) -> bool:
        return now.generation == self.before.generation and now.first_bags > self.before.first_bags


class StandIns:
    """Kept in memory only: a restarted manager does not know what earlier stand-ins have cost."""

    def __init__(self) -> None:
        self._begun: dict[SliceId, StandIn] = {}

    def begin(self, event: int, secondary: ReplicaStatus, now: float) -> None:
        self._begun[secondary.slice] = StandIn(event, now, secondary)

    def first_bag(self, replica: ReplicaStatus) -> int | None:
        """The event that tells why it stands in, if it has just made the first bag that nobody else had made."""
        begun = self._begun.get(replica.slice)
        if begun is None or begun.useful or not begun.has_made_something(replica):
            return None
        self._begun[replica.slice] = replace(begun, useful=True)
        return begun.event

    def forget(self, slice_id: SliceId) -> bool:
        """It is the primary now, or given up. Returns whether it was standing in."""
        return self._begun.pop(slice_id, None) is not None

    def end(self, secondary: ReplicaStatus, now: float) -> tuple[int | None, dict[str, Any]]:
        """The event that tells why it stood in, and what that has cost. A false alarm has made nothing new."""
        begun = self._begun.pop(secondary.slice, None)
        if begun is None:
            return None, {}
        useful = begun.useful or begun.has_made_something(secondary)
        spent = {name: round(getattr(secondary, name) - getattr(begun.before, name), 3) for name in PRICES}
        return begun.event, {"stood_in_s": round(now - begun.at, 3), "false_alarm": not useful, **spent}
