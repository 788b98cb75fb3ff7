"""A source slice: cuts its input into epochs, at their time, and publishes them."""

from __future__ import annotations

import pyarrow as pa

from understudy.errors import UnderstudyError
from understudy.log import bag
from understudy.model import schema
from understudy.model.capabilities import ALL
from understudy.model.names import SliceId
from understudy.sources.interface import EndOfSource, Position, SourceReader
from understudy.stream.replica import Replica

TRIM_EVERY = 5


class CutGone(UnderstudyError):
    """A source slice needs a cut that is not kept. A retry helps if another replica has made the epoch meanwhile."""

    def __init__(self, slice_id: SliceId, epoch: int, kept: range) -> None:
        there = f"cuts are kept of epochs {kept.start} to {kept.stop - 1}" if kept else "no cut is kept"
        super().__init__(
            f"{slice_id} does not know where epoch {epoch} ends",
            why=f"{there}; a cut made now would drop or repeat rows",
            fix="restore the home directory from a backup, or run again in a new --home",
        )


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
        epoch = self._first()
        bookmark = self.site.log.bookmark(self.slice, epoch - 1)
        if bookmark is not None:
            # Of the epoch before: where that one ends is asked for first.
            reader.seek(bookmark)
        self.wired()
        self.update(capabilities=ALL)
        while True:
            self.await_goal(epoch)
            self.pause(self.site.rhythm.due(epoch) - self.site.clock())
            self.await_room(epoch)
            self._publish(reader, epoch)
            epoch += 1

    @property
    def _cuts(self) -> SliceId:
        """All slices share the cuts of the first: a row must fall into the same epoch for each of them."""
        return SliceId(self.slice.operator, 0)

    def _first(self) -> int:
        """The damaged epoch to make again, or the first that is missing and that some reader still needs."""
        log, rewind = self.site.log, self.deploy.rewind
        missing = log.first_missing(self.slice, log.floor(self.slice, self.site.layout.readers(self.slice)))
        return missing if rewind is None else min(missing, rewind)

    def _publish(self, reader: SourceReader, epoch: int) -> None:
        rows = self._rows(reader, epoch)
        made = bag.make(self.slice, epoch, schema.conform(rows, self.source.schema), self.splits)
        self.publish(made, durable=False)
        if epoch % TRIM_EVERY == 0:
            self.site.log.settle(self.slice, epoch)
            bookmark = reader.bookmark(epoch)
            if bookmark is not None:
                self.site.log.mark(self.slice, epoch, bookmark)
            self._trim()

    def _trim(self) -> None:
        log, layout = self.site.log, self.site.layout
        log.trim(self.slice, layout.readers(self.slice))
        if self.source.recorded:
            # A slice that returns makes the epochs after its own floor, and the first of them starts at that cut.
            slices = [SliceId(self.slice.operator, index) for index in range(self.vertex.slices)]
            log.trim_cuts(self._cuts, {each: layout.readers(each) for each in slices})

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
        log, kept = self.site.log, self.site.log.cuts(self._cuts)
        if epoch in kept:
            return log.recorded(self._cuts, epoch)
        if epoch < kept.stop:
            raise CutGone(self.slice, epoch, kept)
        end = reader.cut(kept.stop, log.recorded(self._cuts, kept.stop - 1) if kept else None)
        if epoch > kept.stop:
            # Epochs behind it were published without a cut, which only the end of the input explains.
            raise CutGone(self.slice, epoch, kept)
        return log.record(self._cuts, epoch, end)

    def release(self) -> None:
        if self._reader is not None:
            self._reader.close()
