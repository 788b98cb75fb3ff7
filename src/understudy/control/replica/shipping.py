"""In which order a checkpoint is shipped, when one is due, and when to give up trying.

The stages have an order that every crash leaves whole:

1. COMMIT: Spark has committed the epoch;
2. SETTLE: the slice's bags up to it survive a power cut;
3. SHIP: new files are copied, then the marker that names them is written;
4. ACKNOWLEDGE: the slice acknowledges input that it will not read again;
5. RECYCLE: checkpoints nobody needs are removed;
6. TRIM: bags that all readers have acknowledged are removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from understudy.model.config import ShippingSection
from understudy.model.messages import Deploy

TRIM_EVERY = 5
"""Epochs between two trims where nothing is shipped."""


class Stage(IntEnum):
    COMMIT = 1
    SETTLE = 2
    SHIP = 3
    ACKNOWLEDGE = 4
    RECYCLE = 5
    TRIM = 6


class ShipmentView(Protocol):
    """One shipment. `epoch` is the one it covers, as far as that is known."""

    @property
    def ships(self) -> bool:
        """Whether checkpoints are shipped at all, and there is a query to ship from."""
        ...

    @property
    def epoch(self) -> int: ...

    @property
    def fenced(self) -> bool:
        """Whether a newer replica has taken over where a replay may differ."""
        ...

    @property
    def newest_shipped(self) -> int: ...


def first_stage(view: ShipmentView) -> Stage:
    return Stage.COMMIT if view.ships else Stage.TRIM


def after(done: Stage, view: ShipmentView) -> Stage | None:
    """The stage that follows; None when the shipment is over."""
    if done is Stage.COMMIT:
        return Stage.TRIM if view.fenced else Stage.SETTLE
    if done is Stage.SETTLE:
        # While two replicas work, the faster one may have shipped this already.
        return Stage.ACKNOWLEDGE if view.newest_shipped >= view.epoch else Stage.SHIP
    return None if done is Stage.TRIM else Stage(done + 1)


def is_due(epoch: int, ask: Deploy, *, first: bool) -> bool:
    """Whether a shipment, or a trim, follows the bag of an epoch.

    `first`: nobody had published it before. A secondary that stands in beside a primary that is as fast has nothing to
    ship that anybody would miss.
    """
    if not ask.ships or not (ask.primary or first):
        return False
    return (epoch + 1) % (ask.ship_every or TRIM_EVERY) == 0


def acknowledges_at_once(ask: Deploy) -> bool:
    """Nothing can be replayed into a state that is not kept, so no input is held back for it."""
    return ask.primary and ask.ship_every == 0


@dataclass(frozen=True)
class Failures:
    """Shipments that failed in a row. The stream goes on: the next shipment carries what the failed one would have."""

    count: int = 0
    since: float = 0.0

    def one_more(self, now: float) -> Failures:
        return Failures(self.count + 1, self.since if self.count else now)

    def too_many(self, now: float, limits: ShippingSection) -> bool:
        return self.count >= limits.max_failures and now - self.since >= limits.failing_s
