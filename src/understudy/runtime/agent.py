"""The agent of a node: obeys instructions, hosts replicas, says how they are."""

from __future__ import annotations

import logging
import os
import queue
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import psutil

from understudy.control.application.fusion import lay_out
from understudy.errors import InvalidInput, UnderstudyError
from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.model.layout import Kind
from understudy.model.messages import (
    Begin,
    Check,
    Checked,
    Deploy,
    Failure,
    Goal,
    Goodbye,
    Heartbeat,
    Refused,
    Shutdown,
    Stop,
    Stored,
    Welcome,
)
from understudy.model.names import SliceId
from understudy.model.run import Frozen
from understudy.model.topology import Topology
from understudy.runtime.application import load
from understudy.runtime.benchmark_work import KnownWork
from understudy.runtime.home import Home
from understudy.stream import check, frames, session
from understudy.stream.jvm_pulse import Pulse, how_it_ended, jvm_process, start_pulse, watch_end
from understudy.stream.profile import chosen
from understudy.stream.query import QueryReplica
from understudy.stream.replica import Replica
from understudy.stream.session import SparkSession
from understudy.stream.sink import SinkReplica
from understudy.stream.site import Crowd, Site
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
JVM_ENDED = 70
"""The exit code of a node that has lost its JVM."""


class Agent:
    """Messages arrive on the link's thread and are worked off in order by `run`, on the main thread."""

    def __init__(
        self, name: str, master: str, send: Callable[[Frozen], None], ready: Callable[[], None] = lambda: None
    ) -> None:
        self.name = name
        self._master = master
        self._send = send
        self._ready = ready
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._replicas: dict[SliceId, Replica] = {}
        self._welcome: Welcome | None = None
        self._topology: Topology | None = None
        self._spark: SparkSession | None = None
        self._site: Site | None = None
        self._goal: int | None = None
        self._usage = (0.0, 0)
        self._known_work: KnownWork | None = None
        self._pulse: Pulse | None = None
        self._ending = False
        self._directory: Path | None = None
        self._hold: IO[str] | None = None

    def receive(self, message: Any) -> None:
        self._inbox.put(message)

    def beat(self) -> Heartbeat:
        replicas = list(self._replicas.values())
        receipts = [r for replica in replicas if isinstance(replica, SinkReplica) for r in replica.receipts()]
        return Heartbeat(
            ready=self._spark is not None,
            replicas=tuple(replica.status() for replica in replicas),
            receipts=tuple(receipts),
            cpu_s=self._usage[0],
            memory_bytes=self._usage[1],
            slow=self._known_work.slow if self._known_work else False,
            jvm_silent_s=self._jvm_silent_s(),
        )

    def _jvm_silent_s(self) -> float:
        return 0.0 if self._pulse is None else round(self._pulse.silent_s(), 3)

    def is_fit(self) -> bool:
        """Whether it makes sense to offer this node's work: not while its JVM does not move."""
        return self._jvm_silent_s() < UNFIT_S

    def run(self) -> None:
        """Works until the manager says to shut down."""
        threading.Thread(target=self._measure_forever, name="measure", daemon=True).start()
        while not isinstance(message := self._inbox.get(), Shutdown):
            if isinstance(message, Refused):
                failure = message.failure
                raise InvalidInput(failure.what, why=failure.why, fix=failure.fix)
            try:
                self._obey(message)
            except Exception:
                if self._spark is None:
                    # A node without a session is of no use; whoever started it sees why.
                    raise
                logger.exception("could not obey %s", type(message).__name__)
        self._ending = True
        self._stop_all()
        if self._spark is not None:
            self._spark.stop()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _stop_all(self) -> None:
        replicas = list(self._replicas.values())
        for replica in replicas:
            replica.stop()
        deadline = time.monotonic() + STOP_S
        for replica in replicas:
            replica.join(max(0.0, deadline - time.monotonic()))

    def _obey(self, message: Any) -> None:
        match message:
            case Welcome():
                self._prepare(message)
            case Check():
                self._send(self._check())
            case Begin():
                self._begin(message)
            case Deploy():
                self._deploy(message)
            case Stop():
                self._stop(message)
            case Goal():
                self._set_goal(message.epochs)
            case Stored():
                self._stored(message)

    def _prepare(self, welcome: Welcome) -> None:
        if self._welcome is not None:
            # The manager was restarted; we know all this, and our replicas never stopped.
            return
        self._welcome = welcome
        run = welcome.run
        self._topology = load(Path(run.app), run.settings)
        home = Home(Path(welcome.home))
        self._hold, local = home.hold_node(self.name), home.node(self.name)
        # What a process of this name has left is of no use: only what was shipped counts.
        shutil.rmtree(local, ignore_errors=True)
        self._directory = local
        session.check_master(self._master)
        frames.share_code(Path(run.app), self._topology)
        spark = session.start(self.name, self._master, chosen(run.config.jvm), local, run.config.jvm.spark)
        session.await_executors(spark, self._master)
        frames.start_meter(spark)
        self._pulse = start_pulse(spark, local / "pulse")
        watch_end(jvm_process(), self._jvm_ended)
        self._ready()
        if run.detector == "benchmark":
            self._known_work = KnownWork(run.config.detector)
            self._known_work.start()
        self._spark = spark

    def _jvm_ended(self, code: int) -> None:
        """Without its JVM a node is of no use: it says so and ends, and others take over at once."""
        if self._ending:
            return
        why = how_it_ended(code)
        logger.error("%s ends: %s", self.name, why)
        self._send(Goodbye(why=why))
        os._exit(JVM_ENDED)

    def _check(self) -> Checked:
        if self._spark is None or self._topology is None:
            raise RuntimeError("asked to check before the session was up")
        try:
            return Checked(operators=check.analyse(self._spark, self._topology))
        except UnderstudyError as error:
            logger.exception("the check found a mistake")
            return Checked(failure=Failure(what=error.what, why=error.why, fix=error.fix, final=True))
        except Exception as error:
            logger.exception("the check broke")
            what = f"the topology could not be checked: {type(error).__name__}"
            return Checked(
                failure=Failure(what=what, why=str(error)[:500], fix=f"see the log of {self.name}", final=True)
            )

    def _begin(self, begin: Begin) -> None:
        if self._site is not None or self._welcome is None or self._topology is None or self._spark is None:
            return
        home = Home(Path(self._welcome.home))
        disk = Disk()
        schemas = {source.name: source.source.schema for source in self._topology.sources}
        self._site = Site(
            home=home.path,
            local=home.node(self.name),
            run=self._welcome.run.id,
            spark=self._spark,
            log=FileLog(home.log, disk),
            disk=disk,
            topology=self._topology,
            layout=lay_out(self._topology, {name: op.stateful for name, op in begin.operators.items()}),
            schemas=schemas | {name: check.arrow_schema(op) for name, op in begin.operators.items()},
            rhythm=begin.rhythm.anchored(time.monotonic(), begin.age_s),
            backlog=self._welcome.run.backlog,
            # A run that is as fast as it can be is always behind.
            crowd=Crowd(
                self._welcome.run.config.overload, on=self._welcome.run.primaries_first and not self._welcome.run.fast
            ),
            shipping=self._welcome.run.config.shipping,
        )
        if self._goal is not None:
            self._site.goal.set(self._goal)

    def _deploy(self, message: Deploy) -> None:
        slice_id = SliceId.parse(message.slice)
        if self._site is None:
            return
        current = self._replicas.get(slice_id)
        if current is not None and current.deploy.generation == message.generation:
            current.adjust(message)
            return
        if current is not None and current.deploy.generation > message.generation:
            return
        if current is not None:
            current.stop()
        replica = REPLICAS[self._site.layout[slice_id.operator].kind](self._site, message)
        self._replicas[slice_id] = replica
        replica.start()
        logger.info("deployed %s", replica)

    def _stop(self, message: Stop) -> None:
        slice_id = SliceId.parse(message.slice)
        current = self._replicas.get(slice_id)
        if current is not None and current.deploy.generation == message.generation:
            del self._replicas[slice_id]
            current.stop()
            logger.info("stopped %s", current)

    def _set_goal(self, epochs: int) -> None:
        self._goal = epochs
        if self._site is not None:
            self._site.goal.set(epochs)

    def _stored(self, message: Stored) -> None:
        for replica in self._replicas.values():
            if isinstance(replica, SinkReplica) and replica.slice.operator == message.sink:
                replica.stored(message.epoch)

    def _measure_forever(self) -> None:
        own = psutil.Process()
        while True:
            try:
                self._usage = _usage(own)
                for replica in list(self._replicas.values()):
                    if isinstance(replica, QueryReplica):
                        replica.measure()
            except Exception:
                logger.exception("could not measure; a query may be on its way out")
            time.sleep(MEASURE_EVERY_S)


def _usage(own: psutil.Process) -> tuple[float, int]:
    """CPU seconds and memory of this process and all its children, the JVM above all."""
    cpu, memory = 0.0, 0
    for process in [own, *own.children(recursive=True)]:
        try:
            times = process.cpu_times()
            cpu += times.user + times.system
            memory += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return cpu, memory
