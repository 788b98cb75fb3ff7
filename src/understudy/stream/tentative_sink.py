"""The fork of a sink: writes epochs of a branch, marked as tentative, until the stable ones replace them."""

from __future__ import annotations

import threading

from understudy.control.replica.actions import AwaitInput, Wait
from understudy.control.replica.ends import SinkView, Skip, next_of_sink
from understudy.log.branch_log import BranchLog
from understudy.model.capabilities import ALL
from understudy.model.messages import Deploy, TentativeReceipt
from understudy.sinks.interface import SinkWriter
from understudy.stream.context import NodeContext
from understudy.stream.edge import Delivery, InputMissing
from understudy.stream.replica import Replica


class TentativeSink(Replica):
    """Never writes an epoch that the stable sink has written: it looks before and after, and withdraws what came late.

    `_writer` and `_epoch` belong to the replica's own thread. `_receipts` is shared with the agent's thread.
    """

    def __init__(self, context: NodeContext, deploy: Deploy, log: BranchLog) -> None:
        super().__init__(context, deploy)
        self._log = log
        self._upstream = [channel.upstream for channel in context.layout.channels(self.slice)]
        self._input = context.edge.reader(self.slice, context.local)
        self._copies = context.edge.copies(self.slice.operator)
        self._writer: SinkWriter | None = None
        self._epoch = deploy.resume_at
        self._receipts: tuple[TentativeReceipt, ...] = ()
        self._lock = threading.Lock()

    def step(self) -> float:
        if self._writer is None:
            self._open()
            return 0.0
        self._log.reach(self.slice, self._epoch - 1)
        action = next_of_sink(self._look())
        if isinstance(action, Wait):
            return action.seconds
        if isinstance(action, AwaitInput):
            there = self._log.await_bags(self._upstream, action.epoch, action.seconds)
            return 0.0 if there else 0.01
        if isinstance(action, Skip):
            self._epoch = action.epoch
            return 0.0
        return self._deliver(self._writer, action.epoch)

    def _look(self) -> SinkView:
        delivered = self._log.delivered(self.slice)
        there = delivered < self._epoch and self._log.await_bags(self._upstream, self._epoch, 0.0)
        return SinkView(self._epoch, self.context.goal.epochs, there, delivered)

    def _open(self) -> None:
        sink = next(s for s in self.context.topology.sinks if s.name == self.slice.operator)
        self._writer = sink.sink.open_tentative(sink.name, self.context.home, self.context.run)
        self.live.update(capabilities=ALL)

    def _deliver(self, writer: SinkWriter, epoch: int) -> float:
        self.live.wired()
        try:
            delivery = self._input.deliver(epoch)
        except InputMissing:
            return 0.01
        self._write(writer, epoch, delivery)
        self._epoch = epoch + 1
        return 0.0

    def _write(self, writer: SinkWriter, epoch: int, delivery: Delivery) -> None:
        self._copies.keep(epoch, delivery.rows)
        writer.write_tentative(epoch, delivery.rows, delivery.lost)
        if self._log.delivered(self.slice) >= epoch:
            # The stable epoch was written meanwhile, and perhaps found nothing to withdraw.
            writer.withdraw_tentative(epoch)
            self._copies.drop(epoch)
            return
        receipt = TentativeReceipt(
            branch=self.deploy.branch,
            sink=self.slice.operator,
            epoch=epoch,
            rows=delivery.count,
            at=self.context.wall(),
            missing=delivery.lost,
        )
        with self._lock:
            self._receipts = (*self._receipts, receipt)
        self.live.update(epoch=epoch)
        self.live.add(rows_in=delivery.count)

    def receipts(self) -> tuple[TentativeReceipt, ...]:
        """Those the manager has not confirmed yet."""
        return self._receipts

    def stored(self, epoch: int) -> None:
        """The manager has the receipts up to an epoch."""
        with self._lock:
            self._receipts = tuple(receipt for receipt in self._receipts if receipt.epoch > epoch)

    def release(self) -> None:
        if self._writer is not None:
            self._writer.close()
