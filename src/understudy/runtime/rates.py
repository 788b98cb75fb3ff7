"""How many rows every slice emits a second, from the counters in the heartbeats."""

from __future__ import annotations

from understudy.model.messages import ReplicaStatus
from understudy.model.names import SliceId

KEPT = 8
"""Replicas of a slice whose counters are followed."""


class Rates:
    """Counts rows of primaries since `restart`, each from the first time it was heard of, as primary or secondary.

    Rows that a primary makes again after a failure count again. They make up for those that were not made meanwhile, as
    long as the slice is back when the rates are read.
    """

    def __init__(self, now: float) -> None:
        self._since = now
        self._rows: dict[SliceId, int] = {}
        self._seen: dict[SliceId, dict[int, int]] = {}

    def hear(self, replica: ReplicaStatus) -> None:
        """With every heartbeat, of primaries and secondaries."""
        seen = self._seen.setdefault(replica.slice, {})
        before = seen.pop(replica.generation, replica.rows_out)
        seen[replica.generation] = replica.rows_out
        while len(seen) > KEPT:
            del seen[next(iter(seen))]
        if replica.primary:
            made = max(0, replica.rows_out - before)
            self._rows[replica.slice] = self._rows.get(replica.slice, 0) + made

    def restart(self, now: float) -> None:
        self._since, self._rows = now, {}

    def seconds(self, now: float) -> float:
        """For how long rows have been counted."""
        return max(0.0, now - self._since)

    def rates(self, now: float) -> dict[SliceId, float]:
        """Rows a second of every slice that was heard of."""
        passed = self.seconds(now)
        return {slice_id: rows / passed for slice_id, rows in self._rows.items()} if passed > 0 else {}
