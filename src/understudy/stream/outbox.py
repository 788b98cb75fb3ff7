"""What a replica makes: published, or held back in a spool until its primary has published it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from understudy.control.replica.bags import Fate, differs, fate
from understudy.log.bag import Bag, DamagedBag
from understudy.stream.edge import Spool
from understudy.stream.failures import Stopped

if TYPE_CHECKING:
    from understudy.stream.replica import Replica


class Outbox:
    """One lock for all of it: a batch that ends during a promotion finds the spool or the log, never neither.

    Where a successor may come to other bags (`Vertex.repeatable` says where), a replica is fenced by its generation:
    what a newer one has begun, it must not go on with. (Between the look at the fence and the publishing a replica may
    freeze. A log whose writes have an order then refuses its bag. With files it is the first of its epoch and counts,
    as if it had been published before, or it is the second and does not.)

    The query's thread calls `put`, the replica's own thread the rest.
    """

    def __init__(self, replica: Replica, spool: Spool) -> None:
        self._replica, self._log = replica, replica.context.log
        self._spool = spool
        self._lock = threading.Lock()
        self.sends = False

    def __len__(self) -> int:
        """Bags that are held back."""
        return len(self._spool)

    def take_over(self) -> None:
        """Replicas of older generations shall publish nothing more."""
        if not self._replica.vertex.repeatable:
            self._log.fence(self._replica.slice, self._replica.deploy.generation)

    @property
    def fenced(self) -> bool:
        """Whether a newer replica has taken over from this one."""
        replica = self._replica
        return not replica.vertex.repeatable and self._log.fenced(replica.slice) > replica.deploy.generation

    def is_published(self, epoch: int) -> bool:
        """Whether readers find a bag of an epoch, or all of them have it already.

        Not every epoch up to the newest: a power cut may take a bag and leave a later one, or leave a torn one.
        """
        slice_id = self._replica.slice
        if epoch > self._log.newest(slice_id):
            return False
        try:
            there = self._log.fetch(slice_id, epoch) is not None
        except DamagedBag:
            return False
        return there or epoch <= self._replica.context.released(slice_id)

    def publish(self, made: Bag) -> bool:
        """Publishes whether or not bags are held back; raises `Stopped` if a newer replica has taken over."""
        with self._lock:
            return self._publish(made)

    def put(self, made: Bag) -> bool:
        """Returns whether this was published, and nobody had done so before."""
        with self._lock:
            decided = fate(made.header.epoch, self)
            if decided is Fate.HALT:
                raise Stopped
            if decided is Fate.PUBLISH:
                return self._publish(made)
            self._replica.live.finished(made.header.epoch, made.header.rows)
            if decided is Fate.SPOOL:
                self._spool.keep(made)
            else:
                self._compare(made.header.epoch, made.header.digest)
            self._trim()
            return False

    def _publish(self, made: Bag) -> bool:
        if self.fenced:
            raise Stopped
        return self._replica.publish(made, durable=not self._replica.vertex.repeatable)

    def send(self) -> None:
        """Publishes what was held back, and everything from now on."""
        with self._lock:
            self._trim()
            for epoch in self._spool.epochs:
                self._publish(self._spool.take(epoch))
                self._spool.drop(epoch)
            self.sends = True
            self._replica.live.update(spooled=0)

    def hold(self) -> None:
        with self._lock:
            self.sends = False

    def trim(self) -> None:
        """What the primary has published meanwhile need not be held any longer."""
        with self._lock:
            self._trim()

    def _trim(self) -> None:
        for epoch in [number for number in self._spool.epochs if self.is_published(number)]:
            self._compare(epoch, self._spool.digest(epoch))
            self._spool.drop(epoch)
        self._replica.live.update(spooled=len(self._spool))

    def _compare(self, epoch: int, digest: str) -> None:
        published = self._log.fetch(self._replica.slice, epoch)
        if published is None:
            return
        header = published.header
        lost = bool(header.lost)
        if differs(digest, header.digest, first=True, lost=lost, stateful=False, deterministic=True):
            self._replica.note_divergence(epoch)
