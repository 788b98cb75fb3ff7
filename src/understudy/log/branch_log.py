"""The log as forks see it: stable bags where they exist, the branch's own where not, empty ones of missing slices.

Forks publish into a log of the branch's own, so nothing of theirs mixes with stable bags. The stable log is read and
never written. The bag of a slice that is missing is empty and names the slice; it exists as soon as a source that is
there has published its epoch, so a branch never runs ahead of the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from understudy.log.bag import Bag
from understudy.log.interface import Log, Published, Stored
from understudy.model.names import SliceId


class Missing:
    """The slices a branch does without. The agent's thread replaces the set, others read it."""

    def __init__(self, slices: Sequence[SliceId] = ()) -> None:
        self.slices = frozenset(slices)


class BranchLog:
    """A `Log` over two others, so it has as many methods as a `Log` has questions.

    `empty` makes the bag of an epoch without rows. What only stable replicas do (acknowledging, trimming, recording
    cuts, making damaged bags again) is refused or has no effect here.
    """

    def __init__(
        self,
        stable: Log,
        own: Log,
        missing: Missing,
        sources: Sequence[SliceId],
        empty: Callable[[SliceId, int], Bag],
    ) -> None:
        self._stable, self._own, self._missing = stable, own, missing
        self._sources, self._empty = tuple(sources), empty

    # -- bags

    def publish(self, bag: Bag, *, durable: bool, generation: int | None = None) -> Published:  # noqa: ARG002
        """Into the branch, unless the stable bag is there. Nothing of a branch has to survive a power cut."""
        header = bag.header
        stable = self._stable.fetch(header.slice, header.epoch)
        return Published(False, stable) if stable is not None else self._own.publish(bag, durable=False)

    def fetch(self, slice_id: SliceId, epoch: int) -> Stored | None:
        found = self._stable.fetch(slice_id, epoch) or self._own.fetch(slice_id, epoch)
        if found is None and self._is_skipped(slice_id, epoch):
            return self._own.publish(self._empty(slice_id, epoch), durable=False).stored
        return found

    def await_bags(self, slices: Sequence[SliceId], epoch: int, timeout_s: float) -> bool:
        lacking = self._lacking(slices, epoch)
        if lacking and timeout_s > 0:
            # Whichever log is likelier; if it is the other one, the caller looks again soon.
            log = self._own if self._own.newest(lacking[0]) >= 0 else self._stable
            log.await_bags(lacking[:1], epoch, timeout_s)
            lacking = self._lacking(lacking, epoch)
        return not lacking

    def _lacking(self, slices: Sequence[SliceId], epoch: int) -> list[SliceId]:
        return [
            one
            for one in slices
            if not self._stable.await_bags([one], epoch, 0.0)
            and not self._own.await_bags([one], epoch, 0.0)
            and not self._is_skipped(one, epoch)
        ]

    def _is_skipped(self, slice_id: SliceId, epoch: int) -> bool:
        return slice_id in self._missing.slices and self._head() >= epoch

    def _head(self) -> int:
        """The newest epoch of a source that is there."""
        there = (one for one in self._sources if one not in self._missing.slices)
        return max((self._stable.newest(one) for one in there), default=-1)

    def newest(self, slice_id: SliceId) -> int:
        """Nobody waits for a missing slice: it counts as being at the head."""
        known = max(self._stable.newest(slice_id), self._own.newest(slice_id))
        return max(known, self._head()) if slice_id in self._missing.slices else known

    def reach(self, reader: SliceId, epoch: int) -> None:
        self._own.reach(reader, epoch)

    def reached(self, reader: SliceId) -> int:
        return max(self._stable.reached(reader), self._own.reached(reader))

    def delivered(self, sink: SliceId) -> int:
        """The newest epoch that the stable sink has written."""
        return self._stable.reached(sink)

    def acknowledged(self, reader: SliceId, upstream: SliceId) -> int:
        return self._stable.acknowledged(reader, upstream)

    def first_missing(self, slice_id: SliceId, above: int = -1) -> int:
        return self._stable.first_missing(slice_id, above)

    def close(self) -> None:
        """Both logs belong to others."""

    def damaged(self, slice_id: SliceId, first: int) -> list[int]:
        return self._stable.damaged(slice_id, first)

    # -- what forks leave to stable replicas

    def settle(self, slice_id: SliceId, epoch: int) -> None:
        pass

    def acknowledge(self, reader: SliceId, upstream: SliceId, epoch: int) -> None:
        pass

    def floor(self, slice_id: SliceId, readers: Sequence[SliceId]) -> int:  # noqa: ARG002
        return -1

    def trim(self, slice_id: SliceId, readers: Sequence[SliceId]) -> int:  # noqa: ARG002
        return -1

    def set_aside(self, slice_id: SliceId, epoch: int) -> None:
        pass

    def fence(self, slice_id: SliceId, generation: int) -> None:
        pass

    def fenced(self, slice_id: SliceId) -> int:  # noqa: ARG002
        return 0

    def record(self, slice_id: SliceId, epoch: int, value: Any) -> Any:
        raise NotImplementedError("sources have no forks")

    def recorded(self, slice_id: SliceId, epoch: int) -> Any:
        return self._stable.recorded(slice_id, epoch)

    def cuts(self, slice_id: SliceId) -> range:
        return self._stable.cuts(slice_id)

    def trim_cuts(self, slice_id: SliceId, readers: Mapping[SliceId, Sequence[SliceId]]) -> None:
        pass

    def mark(self, slice_id: SliceId, epoch: int, bookmark: Any) -> None:
        pass

    def bookmark(self, slice_id: SliceId, epoch: int) -> Any:
        return self._stable.bookmark(slice_id, epoch)
