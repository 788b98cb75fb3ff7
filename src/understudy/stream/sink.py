"""A sink slice: writes published bags to the outside, in epoch order, and keeps receipts."""

from __future__ import annotations

import itertools
import time

import pyarrow as pa

from understudy.log.bag import DamagedBag
from understudy.model import hashing
from understudy.model.messages import Failure, Receipt, State
from understudy.model.switches import ALL
from understudy.sinks.interface import SinkWriter, Written
from understudy.stream.replica import Replica


class SinkReplica(Replica):
    """An epoch counts as delivered when the manager has its receipt; only then is the bag acknowledged."""

    _writer: SinkWriter | None = None

    def work(self) -> None:
        sink = next(s for s in self.site.topology.sinks if s.name == self.slice.operator)
        self.channels = self.site.layout.channels(self.slice)
        self.schema = self.site.schemas[sink.stream]
        self._receipts: list[Receipt] = []
        with self.step("deploy"):
            writer = sink.sink.open(sink.name, self.site.home, self.site.run)
            self._writer = writer
        self._known = self.deploy.resume_at - 1
        self.update(switches=ALL)
        for epoch in itertools.count(self.deploy.resume_at):
            self.await_goal(epoch)
            self._await_bags(epoch)
            self._write(writer, epoch)

    def _await_bags(self, epoch: int) -> None:
        upstream = [channel.upstream for channel in self.channels]
        self.site.log.reach(self.slice, epoch - 1)
        while not self.site.log.await_bags(upstream, epoch, 0.2):
            self.check_stop()
            # Again: a replica that was replaced may have said less meanwhile, and whoever writes for us would wait.
            self.site.log.reach(self.slice, epoch - 1)
        self.wired()

    def _write(self, writer: SinkWriter, epoch: int) -> None:
        rows, lost = self._read(epoch)
        written = writer.write(epoch, rows)
        receipt = Receipt(
            sink=self.slice.operator,
            epoch=epoch,
            rows=rows.num_rows,
            digest=hashing.digest(rows),
            at=time.time(),
            fresh=bool(written),
            repeated=written == Written.AGAIN,
            lost=lost,
        )
        self._receipts = [*self._receipts, receipt]
        self.update(epoch=epoch, rows_in=self._status.rows_in + rows.num_rows)
        self.progressed(epoch)

    def _read(self, epoch: int) -> tuple[pa.Table, tuple[str, ...]]:
        """The rows of an epoch, and the slices that left a gap in it."""
        tables: list[pa.Table] = []
        lost: set[str] = set()
        for channel in self.channels:
            try:
                stored = self.site.log.fetch(channel.upstream, epoch)
                if stored is None:
                    raise RuntimeError(f"{channel.upstream} lost its bag of epoch {epoch}")
                tables.append(stored.rows(channel, self.schema))
                lost.update(stored.header.lost)
            except DamagedBag as error:
                self.update(state=State.FAILED, failure=damage(error, str(channel.upstream), epoch))
                raise
        return pa.concat_tables(tables), tuple(sorted(lost))

    def receipts(self) -> tuple[Receipt, ...]:
        """Those the manager has not confirmed yet."""
        return tuple(getattr(self, "_receipts", ()))

    def stored(self, epoch: int) -> None:
        self._receipts = [receipt for receipt in self._receipts if receipt.epoch > epoch]
        for channel in self.channels:
            self.site.log.acknowledge(self.slice, channel.upstream, epoch)

    def release(self) -> None:
        if self._writer is not None:
            self._writer.close()


def damage(error: DamagedBag, slice_name: str, epoch: int) -> Failure:
    return Failure(what=error.what, why=error.why, fix=error.fix, damaged=(slice_name, epoch))
