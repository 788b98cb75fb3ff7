"""A source slice: cuts its input into epochs, at their time, and publishes them."""

from __future__ import annotations

from understudy.control.replica.actions import Wait
from understudy.control.replica.ends import Make, MakeEmpty, SourceView, first_of_source, next_of_source
from understudy.errors import UnderstudyError
from understudy.model.capabilities import ALL
from understudy.model.messages import Deploy
from understudy.model.names import SliceId
from understudy.sources.interface import EndOfSource, Position, SourceReader
from understudy.stream.context import NodeContext
from understudy.stream.edge import Rows
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
    """Needs neither Spark nor a checkpoint: the cut of an epoch is a fact, so any epoch can be made again.

    `_epoch` and `_reader` belong to the replica's own thread.
    """

    def __init__(self, context: NodeContext, deploy: Deploy) -> None:
        super().__init__(context, deploy)
        self.source = next(s.source for s in context.topology.sources if s.name == self.slice.operator)
        self._reader: SourceReader | None = None
        self._epoch = 0

    def step(self) -> float:
        if self._reader is None:
            self._open()
            return 0.0
        action = next_of_source(self._look())
        if isinstance(action, Wait):
            return action.seconds
        self._make(self._reader, action)
        return 0.0

    def _look(self) -> SourceView:
        context, epoch = self.context, self._epoch
        due_s = context.rhythm.due(epoch) - context.clock()
        return SourceView(
            epoch=epoch,
            due_s=due_s,
            has_room=due_s <= 0 and context.room(self.slice, epoch),
            goal=context.goal.epochs,
            ended_at=self.live["ended_at"],
        )

    def _open(self) -> None:
        log = self.context.log
        with self.live.step("deploy"):
            reader = self.source.open(self.slice.index, self.vertex.slices, self.context.topology.epoch_s)
            self._reader = reader
        self.set_aside()
        missing = log.first_missing(self.slice, log.floor(self.slice, self.context.layout.readers(self.slice)))
        self._epoch = first_of_source(missing, self.deploy.rewind)
        bookmark = log.bookmark(self.slice, self._epoch - 1)
        if bookmark is not None:
            # Of the epoch before: where that one ends is asked for first.
            reader.seek(bookmark)
        self.live.wired()
        self.live.update(capabilities=ALL)

    def _make(self, reader: SourceReader, action: Make | MakeEmpty) -> None:
        epoch, edge = action.epoch, self.context.edge
        try:
            rows = edge.empty(self.slice.operator) if isinstance(action, MakeEmpty) else self._rows(reader, epoch)
        except EndOfSource:
            self.live.update(ended_at=epoch)
            return
        self.publish(edge.bag(self.slice, epoch, rows), durable=False)
        if epoch % TRIM_EVERY == 0:
            self._tidy(reader, epoch)
        self._epoch = epoch + 1

    def _tidy(self, reader: SourceReader, epoch: int) -> None:
        log, layout = self.context.log, self.context.layout
        log.settle(self.slice, epoch)
        bookmark = reader.bookmark(epoch)
        if bookmark is not None:
            log.mark(self.slice, epoch, bookmark)
        log.trim(self.slice, layout.readers(self.slice))
        if self.source.recorded:
            # A slice that returns makes the epochs after its own floor, and the first of them starts at that cut.
            slices = [SliceId(self.slice.operator, index) for index in range(self.vertex.slices)]
            log.trim_cuts(self._cuts, {each: layout.readers(each) for each in slices})

    @property
    def _cuts(self) -> SliceId:
        """All slices share the cuts of the first: a row must fall into the same epoch for each of them."""
        return SliceId(self.slice.operator, 0)

    def _rows(self, reader: SourceReader, epoch: int) -> Rows:
        start = self._position(reader, epoch - 1)
        return reader.read(epoch, start, self._position(reader, epoch))

    def _position(self, reader: SourceReader, epoch: int) -> Position:
        """Where an epoch ends: computed, or, for a live source, what was written down when it was first cut."""
        if epoch < 0:
            return None
        if not self.source.recorded:
            return reader.cut(epoch, None)
        log, kept = self.context.log, self.context.log.cuts(self._cuts)
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
