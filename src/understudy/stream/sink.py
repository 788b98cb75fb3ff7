"""A sink slice: writes published bags to the outside, in epoch order, and keeps receipts."""

from __future__ import annotations

import time

import pyarrow as pa

from understudy.log.bag import DamagedBag
from understudy.model import hashing
from understudy.model.capabilities import ALL
from understudy.model.messages import Receipt
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
        self.update(capabilities=ALL)
        epoch = self.deploy.resume_at
        while True:
            self.await_goal(epoch)
            # Also while it waits: a replica that was replaced may have said less, and whoever writes for us would wait.
            self.site.log.reach(self.slice, epoch - 1)
            found = self._read(epoch)
            if found is not None:
                self._write(writer, epoch, *found)
                epoch += 1
            else:
                self.check_stop()
                epoch = max(epoch, self._delivered() + 1)

    def _write(self, writer: SinkWriter, epoch: int, rows: pa.Table, lost: tuple[str, ...]) -> None:
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

    def _read(self, epoch: int) -> tuple[pa.Table, tuple[str, ...]] | None:
        """The rows of an epoch, and the slices that left a gap in it; None while they are not all there."""
        if not self.site.log.await_bags([channel.upstream for channel in self.channels], epoch, 0.2):
            return None
        self.wired()
        tables: list[pa.Table] = []
        lost: set[str] = set()
        for channel in self.channels:
            try:
                stored = self.site.log.fetch(channel.upstream, epoch)
                if stored is None:
                    # Damaged, found by another reader, and taken away by the slice that makes it again.
                    return None
                tables.append(stored.rows(channel, self.schema))
                lost.update(stored.header.lost)
            except DamagedBag as error:
                self.report_damage(error, channel.upstream, epoch)
                raise
        return pa.concat_tables(tables), tuple(sorted(lost))

    def _delivered(self) -> int:
        """The newest epoch that is known to be delivered. A predecessor that was given up may have gone on, and bags
        it has acknowledged may be gone; it acknowledges only what the manager has stored."""
        return max((self.site.log.acknowledged(self.slice, one.upstream) for one in self.channels), default=-1)

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
