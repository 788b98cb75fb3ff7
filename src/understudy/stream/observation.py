"""What one decision of an operator's replica sees.

What is in memory and read by nearly every decision is looked up at once; the rest when a rule first reads it, and once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from understudy.control.replica.view import Replacement, Shipping, Trial
from understudy.model.branch import STABLE
from understudy.model.capabilities import Capabilities
from understudy.model.names import SliceId

if TYPE_CHECKING:
    from understudy.stream.query import QueryReplica


T = TypeVar("T")

NEVER = sys.maxsize


class _once(Generic[T]):  # noqa: N801 - used like `property`
    """`functools.cached_property` without its lock: an observation belongs to one thread, and is made many times a
    second."""

    def __init__(self, look: Callable[[Observation], T]) -> None:
        self._look, self._name = look, look.__name__

    def __get__(self, view: Observation, _: type) -> T:
        found = view.__dict__[self._name] = self._look(view)
        return found


class Observation:
    """A `QueryView` of a replica as it stands. Belongs to the replica's own thread.

    It has many methods because a decision may ask many questions; each is one line.
    """

    def __init__(self, replica: QueryReplica) -> None:
        self._replica, queries = replica, replica.queries
        self.on: Capabilities = replica.live.capabilities
        self.next_epoch = replica.position.next
        self.done = replica.position.done
        self.took_over = replica.took_over
        self.gap_left = replica.gap_left
        self.stood_by = replica.stood_by
        self.fruitless = replica.fruitless
        self.trial: Trial = queries.trial
        self.unfit = queries.unfit
        self.shipping: Shipping = replica.shipper.state

    @_once
    def drained(self) -> bool:
        position, query = self._replica.position, self._replica.queries.current
        if position.done < position.next - 1:
            return False
        # Not `done`: a query that was moved on has not run what it was moved past.
        return query is None or position.ran < 0 or query.await_committed(position.ran, 0)

    @property
    def has_query(self) -> bool:
        return self._replica.queries.current is not None

    @_once
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
    def exercised(self) -> bool:
        return self._replica.queries.exercised

    @_once
    def replacement(self) -> Replacement:
        return self._replica.queries.replacement

    @_once
    def newest_published(self) -> int:
        return self._replica.context.log.newest(self._replica.slice)

    @_once
    def newest_shipped(self) -> int:
        return self._replica.store.newest()

    @property
    def goal_reached(self) -> bool:
        return self._replica.context.goal.reached(self.next_epoch)

    @property
    def crowded(self) -> bool:
        return self._replica.context.load.crowded

    @_once
    def input_there(self) -> bool:
        return self._replica.inputs.has(self.next_epoch)

    @_once
    def given_away(self) -> SliceId | None:
        log, own = self._replica.context.log, self._replica.slice
        upstream = self._replica.inputs.upstream
        gone = next((one for one in upstream if log.acknowledged(own, one) >= self.next_epoch), None)
        # Looked at again: it may have come between the two looks.
        return None if gone is None or self._replica.inputs.has(self.next_epoch) else gone

    @_once
    def has_room(self) -> bool:
        return self._replica.context.room(self._replica.slice, self.next_epoch)

    @_once
    def can_fetch(self) -> bool:
        return self._replica.inputs.to_fetch(self.next_epoch) is not None

    @property
    def spooled(self) -> int:
        return len(self._replica.outbox)

    @property
    def reloads(self) -> bool:
        return self._replica.vertex.reloads

    @property
    def replays(self) -> bool:
        return self._replica.vertex.replays

    @property
    def refresh_every(self) -> int:
        """A fork that waits follows nothing: it reads the newest state when its branch opens."""
        return NEVER if self._replica.deploy.branch != STABLE else self._replica.vertex.recovery.refresh_every
