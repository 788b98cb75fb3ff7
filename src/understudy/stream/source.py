"""A source slice: cuts its input into epochs, at their time, and publishes them."""

from __future__ import annotations

import time

import pyarrow as pa

from understudy.log import bag
from understudy.model import schema
from understudy.model.names import SliceId
from understudy.model.switches import ALL
from understudy.sources.interface import EndOfSource, Position, SourceReader
from understudy.stream.replica import Replica

TRIM_EVERY = 5


class SourceReplica(Replica):
    """Needs neither Spark nor a checkpoint: the cut of an epoch is a fact, so any epoch can be made again."""

    _reader: SourceReader | None = None

    def work(self) -> None:
        self.source = next(s.source for s in self.site.topology.sources if s.name == self.slice.operator)
        self.splits = self.site.layout.splits(self.slice.operator)
        with self.step("deploy"):
            reader = self.source.open(self.slice.index, self.vertex.slices, self.site.topology.epoch_s)
            self._reader = reader
        self.set_aside()
        first = self.site.log.first_missing(self.slice)
        epoch = first if self.deploy.rewind is None else min(first, self.deploy.rewind)
        self.wired()
        self.update(switches=ALL)
        while True:
            self.await_goal(epoch)
            self.pause(self.site.rhythm.due(epoch) - time.time())
            self.await_room(epoch)
            self._publish(reader, epoch)
            epoch += 1

    def _publish(self, reader: SourceReader, epoch: int) -> None:
        rows = self._rows(reader, epoch)
        made = bag.make(self.slice, epoch, schema.conform(rows, self.source.schema), self.splits)
        self.publish(made, durable=False)
        if epoch % TRIM_EVERY == 0:
            self.site.log.settle(self.slice, epoch)
            self.site.log.trim(self.slice, self.site.layout.readers(self.slice))

    def _rows(self, reader: SourceReader, epoch: int) -> pa.Table:
        if self._status.ended_at is None:
            try:
                start = self._position(reader, epoch - 1)
                return reader.read(epoch, start, self._position(reader, epoch))
            except EndOfSource:
                self.update(ended_at=epoch)
        # Past its end a source says nothing more, once it is known how long the others go on.
        while self.site.goal.epochs is None:
            self.pause(0.05)
        self.await_goal(epoch)
        return self.source.schema.empty_table()

    def _position(self, reader: SourceReader, epoch: int) -> Position:
        """Where an epoch ends: computed, or, for a live source, what was written down when it was first cut."""
        if epoch < 0:
            return None
        if not self.source.recorded:
            return reader.cut(epoch, None)
        # All slices share the cuts of the first: a row must fall into the same epoch for each of them.
        shared = SliceId(self.slice.operator, 0)
        known = self.site.log.recorded(shared, epoch)
        if known is not None:
            return known
        return self.site.log.record(shared, epoch, reader.cut(epoch, self._position(reader, epoch - 1)))

    def release(self) -> None:
        if self._reader is not None:
            self._reader.close()
