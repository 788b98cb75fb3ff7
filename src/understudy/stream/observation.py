"""What one decision of an operator's replica sees. Every field is looked up when a rule first reads it, and once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from understudy.control.replica.view import Replacement, Shipping, Trial
from understudy.model.capabilities import Capabilities
from understudy.model.names import SliceId
from understudy.model.recovery import Guarantee

if TYPE_CHECKING:
    from understudy.stream.query import QueryReplica


class Observation:
    """A `QueryView` of a replica as it stands. Belongs to the replica's own thread.

    It has many methods because a decision may ask many questions; each is one line.
    """

    def __init__(self, replica: QueryReplica) -> None:
        self._replica = replica
        self.on: Capabilities = replica.live.capabilities
        self.next_epoch = replica.position.next
        self.done = replica.position.done
        self.took_over = replica.took_over
        self.gap_left = replica.gap_left
        self.stood_by = replica.stood_by
        self.fruitless = replica.fruitless
        self.reloads = replica.vertex.reloads
        self.replays = Guarantee(replica.vertex.recovery.guarantee).replays
        self.refresh_every = replica.vertex.recovery.refresh_every

    @cached_property
    def drained(self) -> bool:
        position, query = self._replica.position, self._replica.queries.current
        if position.done < position.next - 1:
            return False
        # Not `done`: a query that was moved on has not run what it was moved past.
        return query is None or position.ran < 0 or query.await_committed(position.ran, 0)

    @property
    def has_query(self) -> bool:
        return self._replica.queries.current is not None

    @cached_property
    def arrived(self) -> bool:
        query = self._replica.queries.current
        return query is not None and query.arrived

    @property
    def loaded(self) -> bool:
        return self._replica.queries.loaded

    @property
    def load_tried_at(self) -> int | None:
        return self._replica.queries.load_tried_at

    @property
    def unfit(self) -> bool:
        return self._replica.queries.unfit

    @property
    def trial(self) -> Trial:
        return self._replica.queries.trial

    @property
    def exercised(self) -> bool:
        return self._replica.queries.exercised

    @cached_property
    def replacement(self) -> Replacement:
        return self._replica.queries.replacement

    @property
    def shipping(self) -> Shipping:
        return self._replica.shipper.state

    @cached_property
    def newest_published(self) -> int:
        return self._replica.context.log.newest(self._replica.slice)

    @cached_property
    def newest_shipped(self) -> int:
        return self._replica.store.newest()

    @property
    def goal_reached(self) -> bool:
        return self._replica.context.goal.reached(self.next_epoch)

    @property
    def crowded(self) -> bool:
        return self._replica.context.load.crowded

    @cached_property
    def input_there(self) -> bool:
        return self._replica.inputs.has(self.next_epoch)

    @cached_property
    def given_away(self) -> SliceId | None:
        log, own = self._replica.context.log, self._replica.slice
        upstream = self._replica.inputs.upstream
        gone = next((one for one in upstream if log.acknowledged(own, one) >= self.next_epoch), None)
        # Looked at again: it may have come between the two looks.
        return None if gone is None or self._replica.inputs.has(self.next_epoch) else gone

    @cached_property
    def has_room(self) -> bool:
        return self._replica.context.room(self._replica.slice, self.next_epoch)

    @cached_property
    def can_fetch(self) -> bool:
        return self._replica.inputs.to_fetch(self.next_epoch) is not None

    @property
    def spooled(self) -> int:
        return len(self._replica.outbox)
