"""The queries of one replica: the one in place, the one that is being prepared beside it, and the trial."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.checkpoints.interface import Marker, Shipped
from understudy.control.replica.view import Replacement, Trial
from understudy.model.recovery import Guarantee
from understudy.stream.edge import InputMissing, Query, Rows

if TYPE_CHECKING:
    from understudy.stream.query import QueryReplica


@dataclass
class Prepared:
    """A query beside the one in place. `again`: the epoch it runs again so that Spark loads the state."""

    query: Query
    first: int
    again: int | None
    shipped: Shipped
    load: bool
    ready: bool = False


class QuerySlot:
    """Belongs to the replica's own thread; `current` is read by others.

    `shipped`, what store and local checkpoint have in common, belongs to the shipper while it is on, and to the
    replica's own thread otherwise.
    """

    def __init__(self, replica: QueryReplica, directory: Path) -> None:
        self._replica = replica
        self._directory = directory
        self._count = 0
        self._trial: Query | None = None
        self._trial_ran = threading.Event()
        self._prepared: Prepared | None = None
        self.current: Query | None = None
        self.shipped = Shipped()
        self.exercised = False
        self.loaded = False
        self.load_tried_at: int | None = None
        self.unfit = False
        self.spent = 0.0
        """CPU seconds of queries that are gone."""

    def _new(self, *, trial: bool = False) -> Query:
        self._count += 1
        replica = self._replica
        name = f"{replica}@{replica.context.local.name}/{self._count}"
        batch = self._swallow if trial else replica.on_batch
        directory = self._directory / f"checkpoint-{self._count}"
        return replica.context.edge.query(replica.slice, name, directory, batch, replica.on_query_ended)

    def retire(self, query: Query) -> None:
        self.spent += query.cpu_s
        query.stop()

    # -- the trial

    def start_trial(self) -> None:
        self._trial_ran.clear()
        self._trial = self._new(trial=True)
        self._trial.start(0, None)
        self._trial.announce(0, [])

    def _swallow(self, _: int, __: Rows) -> None:
        """On the trial's thread."""
        self._trial_ran.set()
        self._replica.changed()

    @property
    def trial(self) -> Trial:
        if self._trial is None:
            return Trial.NONE
        return Trial.DONE if self._trial_ran.is_set() else Trial.RUNNING

    def end_trial(self) -> None:
        if self._trial is not None:
            self.exercised = self.exercised or self._trial_ran.is_set()
            self.retire(self._trial)
        self._trial = None

    # -- a replacement

    def prepare(self, *, load: bool) -> None:
        """Starts a query on the newest shipped checkpoint; the one in place goes on until this one is ready."""
        query = self._new()
        live = self._replica.live
        with live.step("read_checkpoint"):
            first, again, marker, shipped = self._restore(query, load)
        with live.step("deploy"):
            query.start(first, marker if self._replica.vertex.stateful else None)
        self._prepared = Prepared(query, first, again, shipped, load)
        if again is not None:
            # Its bag is there already; when it is committed, its state is loaded.
            query.announce(again, self._replica.inputs.get(again).lines)

    def _restore(self, query: Query, load: bool) -> tuple[int, int | None, Marker | None, Shipped]:
        """The first epoch to process, the one to run again, and what was restored."""
        replica = self._replica
        if replica.vertex.recovery.guarantee == Guarantee.AMNESIA:
            return 0, None, None, Shipped()
        again = load and replica.vertex.reloads
        keep = self._keep_input if again else _ignore
        marker, shipped = replica.store.restore(
            query.directory, replica.deploy.rewind, keep, replica.note_damaged_checkpoint
        )
        if marker is None:
            return 0, None, None, shipped
        runs_again = again and replica.inputs.holds(marker.epoch)
        return marker.epoch + 1, query.forget_last_commit() if runs_again else None, marker, shipped

    def _keep_input(self, marker: Marker) -> None:
        """Before a large state is copied: its input may be trimmed at any moment."""
        with suppress(InputMissing):
            self._replica.inputs.fetch(marker.epoch)

    @property
    def replacement(self) -> Replacement:
        prepared = self._prepared
        if prepared is None:
            return Replacement.NONE
        if not prepared.ready:
            prepared.ready = prepared.again is None or prepared.query.await_committed(prepared.again, 0)
        return Replacement.READY if prepared.ready else Replacement.LOADING

    def swap(self) -> int:
        """The prepared query takes its place; returns the first epoch it has to process."""
        prepared, before = self._prepared, self.current
        if prepared is None:
            raise RuntimeError("there is no query to swap in")
        self._prepared, self.current, self.shipped = None, prepared.query, prepared.shipped
        self.loaded, self.unfit = prepared.again is not None, False
        if prepared.load:
            self.load_tried_at = prepared.first - 1
        if before is not None:
            self.retire(before)
        return prepared.first

    def close(self) -> None:
        """Stops the query in place."""
        if self.current is not None:
            self.retire(self.current)
        self.current, self.loaded, self.unfit = None, False, False

    def release(self) -> None:
        """Stops all of them."""
        self.end_trial()
        if self._prepared is not None:
            self.retire(self._prepared.query)
            self._prepared = None
        self.close()


def _ignore(_: Marker) -> None:
    pass
