"""A sink slice: writes published bags to the outside, in epoch order, and keeps receipts."""

from __future__ import annotations

import threading

from understudy.control.replica.actions import AwaitInput, Wait
from understudy.control.replica.ends import SinkView, Skip, Write, next_of_sink
from understudy.model.capabilities import ALL
from understudy.model.messages import Correction, Deploy, Receipt
from understudy.sinks.interface import SinkWriter, Written
from understudy.stream.context import NodeContext
from understudy.stream.edge import Delivery, InputMissing
from understudy.stream.replica import Replica


class SinkReplica(Replica):
    """An epoch counts as delivered when the manager has its receipt; only then is the bag acknowledged.

    `_writer` and `_epoch` belong to the replica's own thread. `_receipts` is shared with the agent's thread.
    """

    def __init__(self, context: NodeContext, deploy: Deploy) -> None:
        super().__init__(context, deploy)
        self.channels = context.layout.channels(self.slice)
        self._input = context.edge.reader(self.slice, context.local)
        self._writer: SinkWriter | None = None
        self._epoch = deploy.resume_at
        self._receipts: tuple[Receipt, ...] = ()
        self._lock = threading.Lock()

    def step(self) -> float:
        if self._writer is None:
            self._open()
            return 0.0
        # Also while it waits: a replica that was replaced may have said less, and whoever writes for us would wait.
        self.context.log.reach(self.slice, self._epoch - 1)
        action = next_of_sink(self._look())
        if isinstance(action, Wait):
            return action.seconds
        if isinstance(action, AwaitInput):
            return self._await(action)
        if isinstance(action, Skip):
            self._epoch = action.epoch
            return 0.0
        return self._deliver(self._writer, action)

    def _look(self) -> SinkView:
        log, upstream = self.context.log, [channel.upstream for channel in self.channels]
        there = log.await_bags(upstream, self._epoch, 0.0)
        delivered = -1 if there else max((log.acknowledged(self.slice, one) for one in upstream), default=-1)
        return SinkView(self._epoch, self.context.goal.epochs, there, delivered)

    def _open(self) -> None:
        sink = next(s for s in self.context.topology.sinks if s.name == self.slice.operator)
        with self.live.step("deploy"):
            self._writer = sink.sink.open(sink.name, self.context.home, self.context.run)
        self.live.expect_after(self.deploy.resume_at - 1)
        self.live.update(capabilities=ALL)

    def _await(self, action: AwaitInput) -> float:
        clock = self.context.clock
        began = clock()
        there = self.context.log.await_bags([c.upstream for c in self.channels], action.epoch, action.seconds)
        return 0.0 if there else max(0.0, action.seconds - (clock() - began))

    def _deliver(self, writer: SinkWriter, action: Write) -> float:
        self.live.wired()
        try:
            delivery = self._input.deliver(action.epoch)
        except InputMissing:
            # Damaged, found by another reader, and taken away by the slice that makes it again.
            return 0.01
        self._write(writer, action.epoch, delivery)
        self._epoch = action.epoch + 1
        return 0.0

    def _write(self, writer: SinkWriter, epoch: int, delivery: Delivery) -> None:
        written = writer.write(epoch, delivery.rows)
        corrected = self._withdraw(writer, epoch, delivery) if self.context.topology.tentative_s is not None else None
        receipt = Receipt(
            sink=self.slice.operator,
            epoch=epoch,
            rows=delivery.count,
            digest=delivery.digest,
            at=self.context.wall(),
            fresh=bool(written),
            repeated=written == Written.AGAIN,
            lost=delivery.lost,
            corrected=corrected,
        )
        with self._lock:
            self._receipts = (*self._receipts, receipt)
        self.live.update(epoch=epoch)
        self.live.add(rows_in=delivery.count)
        self.live.progressed(epoch)

    def _withdraw(self, writer: SinkWriter, epoch: int, delivery: Delivery) -> Correction | None:
        """The stable epoch is there: what was written tentatively of it, or before it, is withdrawn.

        First the progress is recorded: a fork that writes the epoch after we looked finds it, and withdraws by itself.
        """
        self.context.log.reach(self.slice, epoch)
        copies, corrected = self.context.edge.copies(self.slice.operator), None
        for number in copies.until(epoch):
            if number == epoch:
                corrected = copies.compare(epoch, delivery.rows)
            writer.withdraw_tentative(number)
            copies.drop(number)
        return corrected

    def receipts(self) -> tuple[Receipt, ...]:
        """Those the manager has not confirmed yet."""
        return self._receipts

    def stored(self, epoch: int) -> None:
        """The manager has the receipts up to an epoch."""
        with self._lock:
            self._receipts = tuple(receipt for receipt in self._receipts if receipt.epoch > epoch)
        for channel in self.channels:
            self.context.log.acknowledge(self.slice, channel.upstream, epoch)

    def release(self) -> None:
        if self._writer is not None:
            self._writer.close()
