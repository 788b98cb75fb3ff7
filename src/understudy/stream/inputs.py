"""The input of an operator slice: read from the log, or from what was fetched ahead."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from understudy.log.interface import Log
from understudy.model.names import SliceId
from understudy.stream.edge import Input, InputReader

FETCH_AHEAD = 64


class Inputs:
    """Used by the replica's own thread; `forget` is called by the query's thread as well, so `_ahead` has a lock."""

    def __init__(self, log: Log, upstream: Sequence[SliceId], reader: InputReader) -> None:
        self.upstream = tuple(upstream)
        self._log, self._reader = log, reader
        self._lock = threading.Lock()
        self._ahead: dict[int, Input] = {}

    def newest(self) -> int:
        """The newest epoch that all upstream slices have published."""
        return min((self._log.newest(one) for one in self.upstream), default=-1)

    def holds(self, epoch: int) -> bool:
        return epoch in self._ahead

    def has(self, epoch: int, wait_s: float = 0.0) -> bool:
        return epoch in self._ahead or self._log.await_bags(self.upstream, epoch, wait_s)

    def get(self, epoch: int) -> Input:
        found = self._ahead.get(epoch)
        return found if found is not None else self._reader.read(epoch)

    def fetch(self, epoch: int) -> int:
        """Copies an epoch here, if it is there and not here yet; returns the bytes."""
        if epoch in self._ahead or not self._log.await_bags(self.upstream, epoch, 0.0):
            return 0
        found = self._reader.copy(epoch, self._reader.read(epoch))
        with self._lock:
            self._ahead[epoch] = found
        return found.size

    def to_fetch(self, first: int) -> int | None:
        """The next epoch that can be fetched ahead; None if there is none yet, or enough was fetched."""
        wanted = next((epoch for epoch in range(first, first + FETCH_AHEAD) if epoch not in self._ahead), None)
        return wanted if wanted is not None and self._log.await_bags(self.upstream, wanted, 0.0) else None

    def drop(self) -> None:
        """Forgets all that was fetched."""
        self.forget(max(self._ahead, default=-1))

    def forget(self, epoch: int) -> None:
        """This epoch, and those before it, will not be read again."""
        with self._lock:
            for number in [number for number in self._ahead if number <= epoch]:
                del self._ahead[number]
        self._reader.discard(epoch)
