"""The forks on a node: replicas of a tentative branch, over a log that overlays the stable one."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from understudy.log.branch_log import BranchLog, Missing
from understudy.model.branch import STABLE
from understudy.model.layout import Kind
from understudy.model.messages import Deploy, ReplicaStatus, Stop, TentativeReceipt
from understudy.model.names import SliceId
from understudy.stream.context import NodeContext, NodeLoad
from understudy.stream.query import QueryReplica
from understudy.stream.replica import Replica
from understudy.stream.tentative_sink import TentativeSink

logger = logging.getLogger(__name__)


class Forks:
    """Belongs to the agent's main thread; `statuses` and `receipts` are called by the heartbeat's thread as well.

    A node works for one branch at a time: a fork of a newer one ends those before.
    """

    def __init__(self) -> None:
        self._number = STABLE
        self._missing = Missing()
        self._context: NodeContext | None = None
        self._log: BranchLog | None = None
        self.replicas: dict[SliceId, Replica] = {}

    def deploy(self, stable: NodeContext, message: Deploy) -> None:
        """Starts a fork, or tells one that is there what is missing now."""
        if message.branch < self._number:
            return
        if message.branch > self._number:
            self.stop_all()
            self._begin(stable, message.branch)
        self._missing.slices = frozenset(message.missing)
        current = self.replicas.get(message.slice)
        if current is not None and current.deploy.generation > message.generation:
            return
        if current is not None and current.deploy.generation == message.generation:
            current.adjust(message)
            return
        if current is not None:
            current.stop()
        self.replicas[message.slice] = replica = self._made(message)
        replica.start()
        logger.info("forked %s for branch %d without %s", replica, message.branch, ", ".join(map(str, message.missing)))

    def _begin(self, stable: NodeContext, number: int) -> None:
        sources = stable.layout.of_kind(Kind.SOURCE)
        edge, missing = stable.edge, Missing()
        log = BranchLog(
            stable.log,
            edge.branch_log(number),
            missing,
            sources,
            lambda one, epoch: edge.bag(one, epoch, edge.empty(one.operator), (str(one),)),
        )
        self._number, self._missing, self._log = number, missing, log
        # Forks serve the present: primaries that catch up beside them do not hold them back.
        load = NodeLoad(counts=False)
        local = stable.local / f"branch-{number}"
        self._context = replace(stable, log=log, edge=edge.over(log), local=local, load=load)

    def _made(self, message: Deploy) -> Replica:
        assert self._context is not None
        assert self._log is not None
        if self._context.layout[message.slice.operator].kind is Kind.SINK:
            return TentativeSink(self._context, message, self._log)
        return QueryReplica(self._context, message)

    def stop(self, message: Stop) -> None:
        current = self.replicas.get(message.slice)
        if message.branch == self._number and current is not None and current.deploy.generation == message.generation:
            del self.replicas[message.slice]
            current.stop()
            logger.info("the fork %s ends", current)
        if message.drops and not self.replicas and self._context is not None:
            # Every node does so; what a fork elsewhere still publishes goes with the last of them.
            self._context.edge.drop_branch(message.branch)

    def stop_all(self) -> list[Replica]:
        """Stops every fork; returns them, for whoever waits for their end."""
        ended = list(self.replicas.values())
        self.replicas.clear()
        for replica in ended:
            replica.stop()
        return ended

    def stored(self, branch: int, sink: str, epoch: int) -> None:
        for replica in self._sinks():
            if branch == self._number and replica.slice.operator == sink:
                replica.stored(epoch)

    def statuses(self) -> tuple[ReplicaStatus, ...]:
        return tuple(replica.status() for replica in list(self.replicas.values()))

    def receipts(self) -> tuple[TentativeReceipt, ...]:
        return tuple(receipt for replica in self._sinks() for receipt in replica.receipts())

    def _sinks(self) -> Iterable[TentativeSink]:
        return [replica for replica in list(self.replicas.values()) if isinstance(replica, TentativeSink)]
