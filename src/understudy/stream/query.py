"""An operator slice: one Structured Streaming query, fed epoch by epoch, publishing a bag for each."""

from __future__ import annotations

import itertools
import re
import shutil
import threading
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from understudy.log import bag
from understudy.log.bag import DamagedBag
from understudy.log.interface import Stored
from understudy.model import schema
from understudy.model.layout import Channel
from understudy.model.messages import Deploy, State
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.stream import frames
from understudy.stream.replica import InputGone, Replica, Stopped
from understudy.stream.shipper import Shipper
from understudy.stream.sink import damage
from understudy.stream.site import Site

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_DAMAGED = re.compile(r"damaged bag <<(.*?)>>: ([^\n]*)")
AHEAD = 4


class QueryReplica(Replica):
    def __init__(self, site: Site, deploy: Deploy) -> None:
        super().__init__(site, deploy)
        self.name = f"{self.slice}#{deploy.generation}@{site.local.name}"
        self.directory = site.local / f"{self.slice.operator}-{self.slice.index}-{deploy.generation}"
        self.channels = site.layout.channels(self.slice)
        self.splits = site.layout.splits(self.slice.operator)
        self.gate = frames.gate(site.spark, self.name)
        self.operators = [op for part in self.vertex.parts for op in site.topology.operators if op.name == part]
        self._announced: dict[str, tuple[SliceId, int]] = {}
        self._failed: BaseException | None = None
        self._query: StreamingQuery | None = None
        self._shipper = Shipper(self)

    def work(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        self.set_aside()
        with self.step("read_checkpoint"):
            start = self._shipper.restore()
        with self.step("deploy"):
            self._start_query(start)
        try:
            self._feed(start)
        except Stopped:
            if self._failed is None:
                raise
            raise self._failed from None

    def _start_query(self, start: int) -> None:
        inputs = frames.inputs(self.site.spark, self.name, self._schemas(), start)
        frame = inputs
        for operator in self.operators:
            frame = [operator.function(*frame)]
        last = self.operators[-1]
        self._query = frames.start(frame[0], self.name, last.output_mode, self.directory, self._batch)
        threading.Thread(target=self._watch, name=f"{self} watch", daemon=True).start()
        self._shipper.start()

    def _schemas(self) -> list[pa.Schema]:
        return [self.site.schemas[edge.upstream] for edge in self.vertex.edges]

    def _feed(self, start: int) -> None:
        """Announces every epoch that all upstream slices have published; the query waits at the gate for it."""
        upstream = [channel.upstream for channel in self.channels]
        for epoch in itertools.count(start):
            self.await_goal(epoch)
            began = time.monotonic()
            while not self.site.log.await_bags(upstream, epoch, 0.2):
                self.check_stop()
                self._check_trimmed(epoch)
            self.wired(time.monotonic() - began)
            self.await_room(epoch)
            self._announce(epoch)
            while epoch - self._status.epoch > AHEAD and self._status.epoch >= 0:
                self.pause(0.005)

    def _announce(self, epoch: int) -> None:
        bags = [(channel, self._fetch(channel, epoch)) for channel in self.channels]
        operator = self.operators[0]
        if operator.order == "strict":
            lines = frames.strict_lines(self.directory, epoch, bags, self._schemas(), operator.time or "")
        else:
            lines = [line for channel, stored in bags for line in stored.lines(channel)]
        self._announced = {path: (s, e) for path, (s, e) in self._announced.items() if e > epoch - 2 * AHEAD}
        self._announced |= {str(stored.path): (channel.upstream, epoch) for channel, stored in bags}
        rows = sum(s.rows for channel, stored in bags for s in stored.header.part(channel.split, channel.part))
        self.update(rows_in=self._status.rows_in + rows)
        self.gate.announce(epoch, "\n".join(lines))

    def _fetch(self, channel: Channel, epoch: int) -> Stored:
        try:
            stored = self.site.log.fetch(channel.upstream, epoch)
        except DamagedBag as error:
            self._report_damage(error, channel.upstream, epoch)
            raise
        if stored is None:
            raise RuntimeError(f"{channel.upstream} lost its bag of epoch {epoch}")
        return stored

    def _report_damage(self, error: DamagedBag, upstream: SliceId, epoch: int) -> None:
        self.update(state=State.FAILED, failure=damage(error, str(upstream), epoch))

    def _check_trimmed(self, epoch: int) -> None:
        for channel in self.channels:
            if self.site.log.acknowledged(self.slice, channel.upstream) >= epoch:
                raise InputGone(self.slice, channel.upstream, epoch)

    def _batch(self, frame: DataFrame, _: int) -> None:
        """One micro-batch: its rows become the bag of the epoch. Spark commits only after this returns."""
        try:
            epoch = int(self.gate.planned())
            rows = schema.conform(frame.toArrow(), self.site.schemas[self.slice.operator])
            made = bag.make(self.slice, epoch, rows, self.splits)
            self.publish(made, durable=not self.operators[-1].deterministic)
            self._shipper.published(epoch)
        except BaseException as error:
            # Spark would pass it on as text only.
            self._failed = error
            raise

    def _watch(self) -> None:
        query = self._query
        if query is None:
            return
        try:
            query.awaitTermination()
        except Exception as error:  # noqa: BLE001 - whatever ended the query is this replica's failure
            self._failed = self._explain(self._failed or error)
        self._stop.set()

    def _explain(self, error: BaseException) -> BaseException:
        """Finds in Spark's words the bag that could not be read."""
        match = _DAMAGED.search(str(error))
        place = self._announced.get(match[1]) if match else None
        if match is None or place is None:
            return error
        found = DamagedBag(self.site.home / match[1], match[2])
        self._report_damage(found, *place)
        return found

    def measure(self) -> None:
        """Reads the size of the state from Spark's last progress."""
        progress: Any = self._query.lastProgress if self._query is not None else None
        if progress:
            operators = progress["stateOperators"]
            self.update(
                state_rows=sum(int(op["numRowsTotal"]) for op in operators),
                state_bytes=sum(int(op["memoryUsedBytes"]) for op in operators),
            )

    @property
    def protected(self) -> bool:
        return self.vertex.recovery.scheme != Scheme.NONE

    def release(self) -> None:
        if self._query is not None:
            self._query.stop()
        self._shipper.stop()
        frames.remove_gate(self.site.spark, self.name)
        for directory in (self.directory, frames.sorted_directory(self.directory)):
            shutil.rmtree(directory, ignore_errors=True)
