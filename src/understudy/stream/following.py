"""A query and the checkpoint it works on: started from what was shipped, and brought to what is shipped next."""

from __future__ import annotations

import logging
from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING

from understudy.checkpoints import file_store as shipping
from understudy.checkpoints import spark_files as checkpoint
from understudy.model.capabilities import Capabilities
from understudy.model.messages import Deploy
from understudy.model.recovery import Guarantee
from understudy.stream.gated_query import GatedQuery
from understudy.stream.inputs import InputMissing, Inputs
from understudy.stream.outbox import Outbox
from understudy.stream.replica import Replica
from understudy.stream.site import Site

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

FETCH_AHEAD = 64


class Following(Replica):
    """`_next` is the epoch to be announced next, `_done` the newest that is done, `_ran` the newest this query ran."""

    def __init__(self, site: Site, deploy: Deploy) -> None:
        super().__init__(site, deploy)
        self.channels = site.layout.channels(self.slice)
        self.operators = [op for part in self.vertex.parts for op in site.topology.operators if op.name == part]
        self.schemas = [site.schemas[edge.upstream] for edge in self.vertex.edges]
        self.store = shipping.Store(site.checkpoints, self.slice, site.disk)
        self.shipped = shipping.Shipped()
        self._own = site.local / f"{self.slice.operator}-{self.slice.index}-{deploy.generation}"
        self.inputs = Inputs(site, self.channels, self.operators[0], self.schemas, self._own / "ahead")
        self._outbox = Outbox(self, self._own / "spool", repeatable=self.vertex.repeatable)
        self.query: GatedQuery | None = None
        self._queries = 0
        self._next = 0
        self._done = -1
        self._ask = deploy
        self._ran = -1
        self._loaded = self._has_run = False
        self._spent = 0.0

    @property
    def on(self) -> Capabilities:
        return self._status.capabilities

    @property
    def fenced(self) -> bool:
        return self._outbox.fenced

    @property
    def _guarantee(self) -> Guarantee:
        return Guarantee(self.vertex.recovery.guarantee)

    @abstractmethod
    def _batch(self, epoch: int, frame: DataFrame) -> None:
        """What becomes of the rows of an epoch."""

    @abstractmethod
    def _query_ended(self, error: BaseException | None) -> None:
        """The query has ended by itself."""

    # -- the query

    def _new_query(self, batch: object = None) -> GatedQuery:
        self._queries += 1
        name = f"{self}@{self.site.local.name}/{self._queries}"
        directory = self._own / f"checkpoint-{self._queries}"
        return GatedQuery(self.site.spark, name, directory, batch or self._batch, self._query_ended)  # type: ignore[arg-type]

    def _start_query(self, *, load: bool) -> None:
        """Starts a query beside the one that may be there, and only then lets that one go."""
        query = self._new_query()
        with self.step("read_checkpoint"):
            start, again, marker = self._restore(query, load)
        logger.info("%s: a query starts at epoch %d%s", self, start, "" if again is None else ", its state loaded")
        with self.step("deploy"):
            query.start(self.operators, self.schemas, start, marker if self.vertex.stateful else None)
        before, self.query = self.query, query
        self._next, self._done, self._ran = start, start - 1, -1
        self._loaded = self._has_run = again is not None
        if again is not None:
            self._run_again(query, again)
        self.update(synced_to=start - 1)
        if before is not None:
            self._retire(before)

    def _restore(self, query: GatedQuery, load: bool) -> tuple[int, int | None, checkpoint.Marker | None]:
        """The first epoch to process, the one to run again so that Spark loads the state, and what was restored."""
        if self._guarantee is Guarantee.AMNESIA:
            return 0, None, None
        again = load and self.vertex.reloads
        keep = self._keep_input if again else lambda _: None
        marker, self.shipped = self.store.restore(query.directory, self.deploy.rewind, keep)
        if marker is None:
            return 0, None, None
        if again and self.inputs.holds(marker.epoch):
            return marker.epoch + 1, checkpoint.forget_last_commit(query.directory), marker
        return marker.epoch + 1, None, marker

    def _keep_input(self, marker: checkpoint.Marker) -> None:
        """Before a large state is copied: it may be trimmed at any moment."""
        with suppress(InputMissing):
            self.inputs.fetch(marker.epoch)

    def _run_again(self, query: GatedQuery, epoch: int) -> None:
        """The last batch of a restored checkpoint once more: its bag is there already, its state is then loaded."""
        query.announce(epoch, self.inputs.get(epoch).lines)
        while not query.await_committed(epoch, 100):
            self.check_stop()

    def _retire(self, query: GatedQuery) -> None:
        self._spent += query.cpu_s
        query.stop()

    # -- following

    def _follow(self, *, refresh_every: int | None = None) -> None:
        """Brings a waiting query to the newest shipped checkpoint, and fetches its next input."""
        query, synced = self.query, self._next - 1
        if query is None or not query.arrived:
            return
        every = refresh_every or self.vertex.recovery.refresh_every
        pulled = self.store.pull(query.directory, self.shipped, synced + every - 1)
        if pulled is not None:
            marker, size = pulled
            self.update(bytes_pulled=self._status.bytes_pulled + size)
            self._move(query, marker)
        if self.on.receives and not self.on.processes:
            self._fetch_ahead()
        self._outbox.trim()

    def _move(self, query: GatedQuery, marker: checkpoint.Marker) -> None:
        if self.vertex.stateful:
            moved = query.jump(marker, keep_state=self.on.receives)
            self._loaded = moved and query.state_loaded
            waits = not self.deploy.capabilities.processes
            unfit = not self._loaded if self.on.receives else not self._has_run
            if not moved or (waits and unfit and self.vertex.reloads):
                # The query cannot follow, perhaps because a checkpoint was missed: another one starts beside it.
                self._start_query(load=waits)
                return
        self._next, self._done = marker.epoch + 1, marker.epoch
        self.update(synced_to=marker.epoch)
        self.inputs.forget(marker.epoch)

    def _fetch_ahead(self) -> None:
        for epoch in range(self._next, self._next + FETCH_AHEAD):
            size = self.inputs.fetch(epoch)
            if not self.inputs.holds(epoch):
                return
            self.update(bytes_received=self._status.bytes_received + size)

    def _finish_announced(self) -> None:
        while self._done < self._next - 1:
            self.pause(0.005)
        # Not `_done`: a query that was moved on has not run what it was moved past.
        while self.query is not None and self._ran >= 0 and not self.query.await_committed(self._ran, 200):
            self.check_stop()
