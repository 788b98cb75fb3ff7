"""Where a replica is in its stream of epochs."""

from __future__ import annotations


class Position:
    """`next` is the epoch to be announced next, `done` the newest that is done, `ran` the newest this query ran.

    Only the replica's own thread changes `next`, so a decision never sees it change. The query's thread changes `done`,
    `ran` and `has_run` when a batch ends. While the query waits at its gate, the replica's own thread may reset `next`
    and `done` (`move`), or all four (`restart`).
    """

    def __init__(self, now: float) -> None:
        self.next = 0
        self.done = -1
        self.ran = -1
        self.has_run = False
        self.moved_at = now
        """When a batch was last done, or the first one after a pause began."""

    def restart(self, first: int, *, has_run: bool) -> None:
        """Another query takes the place, and begins with this epoch."""
        self.next, self.done, self.ran, self.has_run = first, first - 1, -1, has_run

    def move(self, first: int) -> None:
        """The query goes on with this epoch without having run those before it."""
        self.next, self.done = first, first - 1

    def announced(self, epoch: int, now: float) -> None:
        if self.done >= epoch - 1:
            self.moved_at = now
        self.next = epoch + 1

    def finished(self, epoch: int, now: float) -> None:
        """On the query's thread."""
        self.done, self.ran, self.has_run = max(self.done, epoch), epoch, True
        self.moved_at = now

    def stalled_s(self, now: float) -> float:
        """For how long the query has had input and has finished nothing."""
        return round(now - self.moved_at, 3) if self.done < self.next - 1 else 0.0
