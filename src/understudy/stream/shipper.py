"""Ships a query's checkpoint when one is due, stage by stage, beside the query.

`control/replica/shipping.py` has the order of the stages. `turn` is one stage; on a node a thread calls it again and
again, in the simulated cluster a scheduler does.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from understudy.checkpoints.interface import Checkpoint
from understudy.control.replica import shipping
from understudy.control.replica.shipping import Failures, Stage
from understudy.control.replica.view import Shipping
from understudy.errors import Unavailable
from understudy.stream.failures import ShippingFails, ShippingNeverWorked

if TYPE_CHECKING:
    from understudy.stream.query import QueryReplica

logger = logging.getLogger(__name__)

COMMIT_MS = 200
COMMIT_S = 0.02
"""After a wait for Spark's commit that was in vain."""
IDLE_S = 1.0


class Shipment:
    """One shipment on its way; belongs to the shipper's thread."""

    def __init__(self, replica: QueryReplica, epoch: int) -> None:
        self._replica = replica
        self.epoch = epoch
        self.checkpoint: Checkpoint | None = None
        self.released = -1
        self.began = replica.context.clock()
        self.stage: Stage | None = shipping.first_stage(self)

    @property
    def ships(self) -> bool:
        return self._replica.deploy.ship_every > 0 and self._replica.queries.current is not None

    @property
    def fenced(self) -> bool:
        return self._replica.outbox.fenced

    @property
    def newest_shipped(self) -> int:
        # Not what was seen a while ago: one that was found damaged since must be shipped again.
        return self._replica.store.newest(fresh=True)


class Shipper:
    """`published` is called by the query's thread, `start` and `stop` by the replica's own, `turn` by the shipper's.

    `_due`, `_wanted` and `_state` are shared and behind `_lock`; the rest belongs to the shipper's thread.
    """

    def __init__(self, replica: QueryReplica) -> None:
        self._replica = replica
        self._lock = threading.Lock()
        self._signal = replica.context.edge.signal()
        self._due: int | None = None
        self._wanted = False
        self._state = Shipping.OFF
        self._shipment: Shipment | None = None
        self._failures = Failures()
        self._join: Callable[[], None] | None = None

    @property
    def state(self) -> Shipping:
        return self._state

    # -- the replica's own thread

    def start(self) -> None:
        with self._lock:
            self._wanted, self._state, self._due = True, Shipping.ON, None
        self._join = self._replica.context.edge.spawn(f"{self._replica} shipper", self.turn, self._signal)

    def stop(self) -> None:
        """Asks it to end after the stage it is in."""
        with self._lock:
            self._wanted = False
            if self._state is Shipping.ON:
                self._state = Shipping.STOPPING
        self._signal.set()

    def end(self) -> None:
        """Stops it and waits until it has."""
        self.stop()
        if self._join is not None:
            self._join()

    def owe(self, epoch: int) -> None:
        """Ships the state of the last epoch although none is due. Any thread may ask for it."""
        with self._lock:
            self._due = epoch if epoch >= 0 else None
        self._signal.set()

    # -- the query's thread

    def published(self, epoch: int, *, first: bool) -> None:
        """A bag was made; `first`: nobody had published it before."""
        ask = self._replica.deploy
        if not self._wanted:
            return
        if shipping.acknowledges_at_once(ask):
            self._acknowledge(epoch)
        if shipping.is_due(epoch, ask, first=first):
            with self._lock:
                self._due = epoch
            self._signal.set()

    # -- the shipper's thread

    def turn(self) -> float | None:
        """One stage; returns for how many seconds there is nothing to do, None when it was told to stop."""
        with self._lock:
            if not self._wanted:
                self._state, self._shipment = Shipping.OFF, None
                self._replica.changed()
                return None
            if self._shipment is None and self._due is not None:
                self._shipment, self._due = Shipment(self._replica, self._due), None
        return IDLE_S if self._shipment is None else self._attempt(self._shipment)

    def _attempt(self, shipment: Shipment) -> float:
        """The stream goes on without a shipment that fails; the next one carries what it would have carried."""
        stage = shipment.stage
        if stage is None:
            self._shipment = None
            self._succeeded()
            return 0.0
        try:
            if not self._pass(shipment, stage):
                return COMMIT_S
            shipment.stage = shipping.after(stage, shipment)
        except Exception as error:
            logger.exception("%s: shipping epoch %d failed", self._replica, shipment.epoch)
            self._shipment = None
            self._failed(error)
        return 0.0

    def _pass(self, shipment: Shipment, stage: Stage) -> bool:
        """Does what a stage asks for; False if it has to wait."""
        replica, store = self._replica, self._replica.store
        if stage is Stage.COMMIT:
            return self._committed(shipment)
        if stage is Stage.SETTLE:
            replica.context.log.settle(replica.slice, shipment.epoch)
            shipment.released = replica.context.released(replica.slice)
        elif stage is Stage.SHIP:
            self._ship(shipment)
        elif stage is Stage.ACKNOWLEDGE:
            # Also if another replica had shipped it already.
            replica.live.update(shipped_to=shipment.epoch)
            # No more than this replica has done itself: whoever else works may still be reading the rest.
            self._acknowledge(min(shipment.epoch, store.acknowledged(shipment.released)))
        elif stage is Stage.RECYCLE:
            store.recycle(shipment.released)
        else:
            replica.context.log.trim(replica.slice, replica.context.layout.readers(replica.slice))
        return True

    def _committed(self, shipment: Shipment) -> bool:
        """Whether Spark has committed what is to be shipped; with state, the newest committed epoch is shipped.

        Spark may have committed it a moment before the gate knows of it, and with it the watermarks of its epoch.
        """
        query = self._replica.queries.current
        if query is None or not query.await_committed(shipment.epoch, COMMIT_MS):
            return False
        if not self._replica.vertex.stateful:
            return True
        found = query.checkpoint()
        if found is None:
            raise Unavailable(
                f"the checkpoint of {self._replica} is gone",
                why=f"{query.directory} holds no commit",
                fix="nothing, if this replica was replaced; otherwise look who removes files there",
            )
        if not query.await_committed(found.epoch, COMMIT_MS):
            return False
        shipment.checkpoint = replace(found, watermarks=query.watermarks(found.epoch))
        shipment.epoch = found.epoch
        return True

    def _ship(self, shipment: Shipment) -> None:
        replica = self._replica
        began = replica.context.clock()
        done = replica.store.ship(
            shipment.checkpoint, shipment.epoch, replica.deploy.generation, replica.queries.shipped
        )
        replica.live.add(bytes_shipped=done.copied)
        replica.live.update(
            shipped_to=shipment.epoch,
            checkpoint_bytes=done.whole,
            ship_bytes=done.copied,
            ship_s=round(replica.context.clock() - began, 4),
        )

    def _acknowledge(self, epoch: int) -> None:
        """Not by a secondary: its primary may still be reading what it would give away."""
        if self._replica.deploy.primary:
            for upstream in self._replica.inputs.upstream:
                self._replica.context.log.acknowledge(self._replica.slice, upstream, epoch)

    def _succeeded(self) -> None:
        if self._failures.count:
            self._failures = Failures()
            self._replica.live.update(ship_failures=0, ship_error=None)

    def _failed(self, error: Exception) -> None:
        now = self._replica.context.clock()
        self._failures = self._failures.one_more(now)
        count, since = self._failures.count, self._failures.since
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        self._replica.live.update(ship_failures=count, ship_error=reason)
        if self._failures.too_many(now, self._replica.context.shipping):
            kind = ShippingFails if self._replica.live["shipped_to"] >= 0 else ShippingNeverWorked
            what = f"its checkpoint could not be shipped, {count} times in {now - since:.0f} s"
            fix = "mend what checkpoints.url names ('checkpoints' in the home directory), then continue with --resume"
            self._replica.give_up(kind(what, why=reason, fix=fix))
