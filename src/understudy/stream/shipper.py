"""Ships a query's checkpoint every so many epochs, then acknowledges, trims and recycles."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from understudy.checkpoints.spark_files import Checkpoint, committed
from understudy.errors import Unavailable, UnderstudyError
from understudy.model.config import DEFAULTS, ShippingSection

if TYPE_CHECKING:
    from understudy.stream.gated_query import GatedQuery
    from understudy.stream.query import QueryReplica

logger = logging.getLogger(__name__)

_COMMIT_WAIT_MS = 200
TRIM_EVERY = 5


class ShippingFails(UnderstudyError):
    """Another replica may be able to ship, on another node or from a directory of its own."""


class ShippingNeverWorked(Unavailable):
    """This replica has shipped nothing since it was started, so the next one would not either."""


class Shipper:
    """Works beside the query; the only thing they share is the checkpoint directory."""

    def __init__(
        self,
        replica: QueryReplica,
        clock: Callable[[], float] = time.monotonic,
        limits: ShippingSection = DEFAULTS.shipping,
    ) -> None:
        self._replica, self._clock, self._limits = replica, clock, limits
        self._failures, self._failing_since = 0, 0.0
        self._store = replica.store
        self._due = threading.Condition()
        self._epoch: int | None = None
        self._stop = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._guarded, name=f"{self._replica} shipper", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with self._due:
            self._stop = True
            self._due.notify()
        if self._thread is not None:
            self._thread.join()

    def published(self, epoch: int) -> None:
        """Called by the query after each bag."""
        deploy = self._replica.deploy
        if not deploy.ships:
            # A secondary that was told to sleep again, and finishes what it had begun.
            return
        if deploy.ship_every == 0:
            # Nothing can be replayed into a state that is not kept, so nothing is held back for it.
            self._acknowledge(epoch)
        if (epoch + 1) % (deploy.ship_every or TRIM_EVERY) == 0:
            with self._due:
                self._epoch = epoch
                self._due.notify()

    def _guarded(self) -> None:
        while (epoch := self._next()) is not None:
            self._attempt(epoch)

    def _attempt(self, epoch: int) -> None:
        """The stream goes on without a shipment that fails; the next one carries what it would have carried."""
        try:
            if self._replica.deploy.ship_every > 0:
                self._ship(epoch)
            self._trim()
        except Exception as error:
            logger.exception("%s: shipping epoch %d failed", self._replica, epoch)
            self._note_failure(error)
        else:
            if self._failures:
                self._failures = 0
                self._replica.update(ship_failures=0, ship_error=None)

    def _note_failure(self, error: Exception) -> None:
        self._failing_since = self._failing_since if self._failures else self._clock()
        self._failures += 1
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        self._replica.update(ship_failures=self._failures, ship_error=reason)
        failing_s = self._clock() - self._failing_since
        if self._failures >= self._limits.max_failures and failing_s >= self._limits.failing_s:
            kind = ShippingFails if self._replica.status().shipped_to >= 0 else ShippingNeverWorked
            what = f"its checkpoint could not be shipped, {self._failures} times in {failing_s:.0f} s"
            fix = "mend the directory 'checkpoints' in the home directory, then continue with --resume"
            self._replica.give_up(kind(what, why=reason, fix=fix))

    def _next(self) -> int | None:
        with self._due:
            while self._epoch is None and not self._stop:
                self._due.wait()
            epoch, self._epoch = self._epoch, None
            return None if self._stop else epoch

    def _ship(self, epoch: int) -> None:
        """The numbered order: 1 committed, 2 bags settled, 3 files, 4 marker, 5 acknowledged, 6 recycled."""
        replica, query = self._replica, self._replica.query
        if query is None or not self._await(query, epoch) or replica.fenced:
            return
        checkpoint = self._committed(query) if replica.vertex.stateful else None
        if checkpoint is not None:
            epoch = checkpoint.epoch
        elif replica.vertex.stateful:
            return
        replica.site.log.settle(replica.slice, epoch)
        released = replica.site.released(replica.slice)
        if self._store.newest() >= epoch:
            # While two replicas work, the faster one has shipped this already.
            self._acknowledge_shipped(epoch, released)
            return
        began = time.monotonic()
        shipment = self._store.ship(checkpoint, epoch, replica.deploy.generation, replica.shipped)
        self._acknowledge_shipped(epoch, released)
        self._store.recycle(released)
        replica.update(
            bytes_shipped=replica.status().bytes_shipped + shipment.copied,
            shipped_to=epoch,
            checkpoint_bytes=shipment.whole,
            ship_bytes=shipment.copied,
            ship_s=round(time.monotonic() - began, 4),
        )

    def _await(self, query: GatedQuery, epoch: int) -> bool:
        """Whether the query has committed the epoch; False if the replica was stopped first."""
        while not query.await_committed(epoch, _COMMIT_WAIT_MS):
            if self._stop:
                return False
        return True

    def _committed(self, query: GatedQuery) -> Checkpoint | None:
        """The newest local checkpoint; None if the replica was stopped first.

        Spark may have committed it a moment before the gate knows of it, and with it the watermarks of its epoch.
        """
        found = committed(query.directory)
        if found is None:
            raise Unavailable(
                f"the checkpoint of {self._replica} is gone",
                why=f"{query.directory} holds no commit",
                fix="nothing, if this replica was replaced; otherwise look who removes files there",
            )
        if not self._await(query, found.epoch):
            return None
        return replace(found, watermarks=query.watermarks(found.epoch))

    def _acknowledge_shipped(self, epoch: int, released: int) -> None:
        """No more than this replica has done itself: whoever else works may still be reading the rest."""
        self._acknowledge(min(epoch, self._store.acknowledged(released)))

    def _acknowledge(self, epoch: int) -> None:
        """Not by a secondary: its primary may still be reading what it would give away."""
        if not self._replica.deploy.primary:
            return
        for channel in self._replica.channels:
            self._replica.site.log.acknowledge(self._replica.slice, channel.upstream, epoch)

    def _trim(self) -> None:
        site, slice_id = self._replica.site, self._replica.slice
        site.log.trim(slice_id, site.layout.readers(slice_id))
