"""The agent of a node: obeys the manager's messages, hosts replicas, says how they are."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from understudy.errors import InvalidInput
from understudy.model.branch import STABLE
from understudy.model.layout import Kind
from understudy.model.messages import (
    Begin,
    Check,
    Checked,
    Deploy,
    Goal,
    Goodbye,
    Heartbeat,
    Refused,
    Ship,
    Shutdown,
    Stop,
    Stored,
    Welcome,
)
from understudy.model.names import SliceId
from understudy.model.run import Frozen
from understudy.runtime.forks import Forks
from understudy.stream.context import NodeContext
from understudy.stream.query import QueryReplica
from understudy.stream.replica import Replica
from understudy.stream.sink import SinkReplica
from understudy.stream.source import SourceReplica

logger = logging.getLogger(__name__)

REPLICAS: dict[Kind, type[Replica]] = {
    Kind.SOURCE: SourceReplica,
    Kind.OPERATOR: QueryReplica,
    Kind.SINK: SinkReplica,
}
MEASURE_EVERY_S = 1.0
STOP_S = 3.0
UNFIT_S = 1.0


class NodeHost(Protocol):
    """The process an agent works in: `spark_host.py` on a node, values in memory in the simulated cluster."""

    @property
    def ready(self) -> bool:
        """Whether replicas can be hosted."""
        ...

    @property
    def slow(self) -> bool:
        """Whether a known piece of work took too long just now."""
        ...

    @property
    def jvm_silent_s(self) -> float:
        """Since when the JVM has not moved."""
        ...

    @property
    def usage(self) -> tuple[float, int]:
        """CPU seconds and bytes of memory of the node, as of the last `measure`."""
        ...

    def prepare(self, welcome: Welcome) -> None:
        """Gets ready to host replicas; called once."""
        ...

    def check(self) -> Checked: ...

    def begin(self, begin: Begin) -> NodeContext: ...

    def measure(self) -> None: ...

    def close(self) -> None: ...


class Agent:
    """Messages arrive on the link's thread and are worked off in order by `run`, on the main thread.

    Only the main thread changes what is here, but for `_inbox`. `beat` is called by the heartbeat's thread.
    """

    def __init__(
        self,
        name: str,
        host: NodeHost,
        send: Callable[[Frozen], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._host, self._send, self._clock = host, send, clock
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.replicas: dict[SliceId, Replica] = {}
        self.forks = Forks()
        self._welcome: Welcome | None = None
        self._context: NodeContext | None = None
        self._goal: int | None = None
        self._leaves_at: float | None = None
        self.ending = False

    def receive(self, message: Any) -> None:
        self._inbox.put(message)

    def beat(self) -> Heartbeat:
        replicas = list(self.replicas.values())
        receipts = [r for replica in replicas if isinstance(replica, SinkReplica) for r in replica.receipts()]
        cpu_s, memory_bytes = self._host.usage
        return Heartbeat.trusted(
            {
                "kind": "heartbeat",
                "ready": self._host.ready,
                "replicas": tuple([replica.status() for replica in replicas]),
                "receipts": tuple(receipts),
                "forks": self.forks.statuses(),
                "tentative": self.forks.receipts(),
                "cpu_s": cpu_s,
                "memory_bytes": memory_bytes,
                "slow": self._host.slow,
                "jvm_silent_s": round(self._host.jvm_silent_s, 3),
                "leaves_s": None if self._leaves_at is None else round(max(0.0, self._leaves_at - self._clock()), 3),
            }
        )

    def is_fit(self) -> bool:
        """Whether it makes sense to offer this node's work: not while its JVM does not move."""
        return self._host.jvm_silent_s < UNFIT_S

    def leave(self) -> float:
        """The node is to end. Returns the seconds it has for that: none where it has nothing to hand over.

        Every heartbeat says so until the manager has moved away what is here and lets the node go.
        """
        known = self._welcome is not None and self._context is not None
        within_s = self._welcome.run.config.cluster.notice_s if self._welcome and known else 0.0
        self._leaves_at = self._clock() + within_s
        logger.info("%s leaves within %.0f s", self.name, within_s)
        return within_s

    def end(self) -> None:
        """The time is up: what is still here is taken over elsewhere."""
        self.say_goodbye("its notice is over")
        self.receive(Shutdown())

    def say_goodbye(self, why: str) -> None:
        """The last word of a node that cannot go on; nothing if it ends anyway."""
        if not self.ending:
            logger.error("%s ends: %s", self.name, why)
            self._send(Goodbye(why=why))

    def run(self) -> None:
        """Works until the manager says to shut down."""
        threading.Thread(target=self._measure_forever, name="measure", daemon=True).start()
        while not isinstance(message := self._inbox.get(), Shutdown):
            try:
                self.obey(message)
            except Exception:
                if not self._host.ready or isinstance(message, Begin | Refused):
                    # A node without a session, or without the log, is of no use; whoever started it sees why.
                    raise
                logger.exception("could not obey %s", type(message).__name__)
        self.ending = True
        self._stop_all()
        self._host.close()

    def obey(self, message: Any) -> None:
        match message:
            case Welcome():
                self._prepare(message)
            case Check():
                self._send(self._host.check())
            case Begin():
                self._begin(message)
            case Deploy():
                self._deploy(message)
            case Stop():
                self._stop(message)
            case Ship():
                self._ship(message)
            case Goal():
                self._set_goal(message.epochs)
            case Stored():
                self._stored(message)
            case Refused():
                failure = message.failure
                raise InvalidInput(failure.what, why=failure.why, fix=failure.fix)

    def _prepare(self, welcome: Welcome) -> None:
        if self._welcome is not None:
            # The manager was restarted; we know all this, and our replicas never stopped.
            return
        self._welcome = welcome
        self._host.prepare(welcome)

    def _begin(self, begin: Begin) -> None:
        if self._context is not None or not self._host.ready:
            return
        self._context = self._host.begin(begin)
        self._context.goal.epochs = self._goal

    def _deploy(self, message: Deploy) -> None:
        slice_id = message.slice
        if self._context is None:
            return
        if message.branch != STABLE:
            self.forks.deploy(self._context, message)
            return
        current = self.replicas.get(slice_id)
        if current is not None and current.deploy.generation == message.generation:
            current.adjust(message)
            return
        if current is not None and current.deploy.generation > message.generation:
            return
        if current is not None:
            current.stop()
        replica = REPLICAS[self._context.layout[slice_id.operator].kind](self._context, message)
        self.replicas[slice_id] = replica
        replica.start()
        logger.info("deployed %s", replica)

    def _stop(self, message: Stop) -> None:
        if message.branch != STABLE:
            self.forks.stop(message)
            return
        slice_id = message.slice
        current = self.replicas.get(slice_id)
        if current is not None and current.deploy.generation == message.generation:
            del self.replicas[slice_id]
            current.stop()
            logger.info("stopped %s", current)

    def _ship(self, message: Ship) -> None:
        current = self.replicas.get(message.slice)
        if isinstance(current, QueryReplica) and current.deploy.generation == message.generation:
            current.ship_now()

    def _set_goal(self, epochs: int) -> None:
        self._goal = epochs
        if self._context is not None:
            self._context.goal.epochs = epochs

    def _stored(self, message: Stored) -> None:
        if message.branch != STABLE:
            self.forks.stored(message.branch, message.sink, message.epoch)
            return
        for replica in self.replicas.values():
            if isinstance(replica, SinkReplica) and replica.slice.operator == message.sink:
                replica.stored(message.epoch)

    def _stop_all(self) -> None:
        replicas = [*self.replicas.values(), *self.forks.stop_all()]
        for replica in replicas:
            replica.stop()
        deadline = time.monotonic() + STOP_S
        for replica in replicas:
            replica.ended.wait(max(0.0, deadline - time.monotonic()))

    def _measure_forever(self) -> None:
        while True:
            try:
                self.measure()
            except Exception:
                logger.exception("could not measure; a query may be on its way out")
            time.sleep(MEASURE_EVERY_S)

    def measure(self) -> None:
        """Brings the figures of the node and of its operators up to date."""
        self._host.measure()
        for replica in list(self.replicas.values()):
            if isinstance(replica, QueryReplica):
                replica.measure()
