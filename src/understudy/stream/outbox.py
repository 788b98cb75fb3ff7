"""What a replica makes: published, or held back in a spool until its primary has published it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from understudy.log.bag import Bag
from understudy.log.spool import Spool
from understudy.stream.replica import Stopped

if TYPE_CHECKING:
    from pathlib import Path

    from understudy.stream.replica import Replica


class Outbox:
    """One lock for all of it: a batch that ends during a promotion finds the spool or the log, never neither.

    Where a successor may come to other bags (`Vertex.repeatable` says where), a replica is fenced by its generation:
    what a newer one has begun, it must not go on with. (Between the look at the fence and the publishing a replica may
    freeze. Its bag is then the first of its epoch and counts, as if it had been published before, or it is the second
    and does not.)
    """

    def __init__(self, replica: Replica, directory: Path, *, repeatable: bool) -> None:
        self._replica, self._log = replica, replica.site.log
        self._spool = Spool(directory, replica.site.disk)
        self._lock = threading.Lock()
        self._sends = False
        self._repeatable = repeatable

    def take_over(self) -> None:
        """Replicas of older generations shall publish nothing more."""
        if not self._repeatable:
            self._log.fence(self._replica.slice, self._replica.deploy.generation)

    @property
    def fenced(self) -> bool:
        """Whether a newer replica has taken over from this one."""
        return not self._repeatable and self._log.fenced(self._replica.slice) > self._replica.deploy.generation

    def publish(self, made: Bag) -> bool:
        """Publishes whether or not bags are held back; raises `Stopped` if a newer replica has taken over."""
        with self._lock:
            return self._publish(made)

    def put(self, made: Bag) -> bool:
        """Answers whether this was published, and nobody had done so before."""
        with self._lock:
            if self._sends:
                return self._publish(made)
            self._keep(made)
            return False

    def _publish(self, made: Bag) -> bool:
        if self.fenced:
            raise Stopped
        return self._replica.publish(made, durable=not self._repeatable)

    def _keep(self, made: Bag) -> None:
        epoch = made.header.epoch
        self._replica.finished(epoch, made.header.rows)
        if epoch > self._log.newest(self._replica.slice):
            self._spool.keep(made)
        else:
            self._compare(epoch, made.header.digest)
        self._trim()

    def send(self) -> None:
        """Publishes what was held back, and everything from now on."""
        with self._lock:
            self._trim()
            for epoch in self._spool.epochs:
                self._publish(self._spool.take(epoch))
                self._spool.drop(epoch)
            self._sends = True
            self._replica.update(spooled=0)

    def hold(self) -> None:
        with self._lock:
            self._sends = False

    def trim(self) -> None:
        """What the primary has published meanwhile need not be held any longer."""
        with self._lock:
            self._trim()

    def _trim(self) -> None:
        if len(self._spool):
            newest = self._log.newest(self._replica.slice)
            for epoch in [number for number in self._spool.epochs if number <= newest]:
                self._compare(epoch, self._spool.digest(epoch))
                self._spool.drop(epoch)
        self._replica.update(spooled=len(self._spool))

    def _compare(self, epoch: int, digest: str) -> None:
        published = self._log.fetch(self._replica.slice, epoch)
        if published is not None and published.header.digest != digest and not published.header.lost:
            self._replica.note_divergence(epoch)
