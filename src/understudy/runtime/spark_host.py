"""The process of a real node: its directory, its SparkSession, its JVM."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import psutil

from understudy.checkpoints import registry as stores
from understudy.checkpoints.interface import Checkpoints
from understudy.checkpoints.place import CheckpointsPlace
from understudy.control.application.fusion import lay_out
from understudy.errors import UnderstudyError
from understudy.log import registry
from understudy.log.disk import Disk
from understudy.log.interface import Log
from understudy.log.place import LogPlace
from understudy.model.layout import Kind, Layout
from understudy.model.messages import Begin, Checked, Failure, Welcome
from understudy.model.run import RunSpec
from understudy.model.topology import Topology
from understudy.runtime.application import load
from understudy.runtime.benchmark_work import KnownWork
from understudy.runtime.home import Home
from understudy.stream import check, frames, session
from understudy.stream.context import NodeContext, NodeLoad
from understudy.stream.jvm_pulse import Pulse, how_it_ended, jvm_process, start_pulse, watch_end
from understudy.stream.profile import chosen
from understudy.stream.session import SparkSession
from understudy.stream.spark_edge import SparkEdge

logger = logging.getLogger(__name__)

JVM_ENDED = 70
"""The exit code of a node that has lost its JVM."""


class SparkHost:
    """`ready_for_work` is called when the session is up; `say_goodbye` before the process ends with its JVM.

    `prepare`, `check`, `begin` and `close` are called by the agent's main thread, `measure` by its measuring thread.
    """

    def __init__(self, name: str, master: str, ready_for_work: Callable[[], None] = lambda: None) -> None:
        self._name, self._master, self._ready_for_work = name, master, ready_for_work
        self.say_goodbye: Callable[[str], None] = lambda _: None
        self._welcome: Welcome | None = None
        self._topology: Topology | None = None
        self._spark: SparkSession | None = None
        self._usage = (0.0, 0)
        self._known_work: KnownWork | None = None
        self._pulse: Pulse | None = None
        self._directory: Path | None = None
        self._hold: IO[str] | None = None
        self._log: Log | None = None
        self._checkpoints: Checkpoints | None = None
        self._closing = False

    @property
    def ready(self) -> bool:
        return self._spark is not None

    @property
    def slow(self) -> bool:
        return self._known_work.slow if self._known_work else False

    @property
    def jvm_silent_s(self) -> float:
        return 0.0 if self._pulse is None else self._pulse.silent_s()

    @property
    def usage(self) -> tuple[float, int]:
        return self._usage

    def prepare(self, welcome: Welcome) -> None:
        self._welcome, run = welcome, welcome.run
        self._topology = load(Path(run.app), run.settings)
        home = Home(Path(welcome.home))
        self._hold, local = home.hold_node(self._name), home.node(self._name)
        # What a process of this name has left is of no use: only what was shipped counts.
        shutil.rmtree(local, ignore_errors=True)
        self._directory = local
        session.check_master(self._master)
        registry.check(run.config.log.url)
        stores.check(run.config.checkpoints.url)
        frames.share_code(Path(run.app), self._topology)
        spark = session.start(self._name, self._master, chosen(run.config.jvm), local, run.config.jvm.spark)
        session.await_executors(spark, self._master)
        frames.start_meter(spark)
        self._pulse = start_pulse(spark, local / "pulse")
        watch_end(jvm_process(), self._jvm_ended)
        self._ready_for_work()
        if run.detector == "benchmark":
            self._known_work = KnownWork(run.config.detector)
            self._known_work.start()
        self._spark = spark

    def _jvm_ended(self, code: int) -> None:
        """Without its JVM a node is of no use: it says so and ends, and others take over at once."""
        if not self._closing:
            self.say_goodbye(how_it_ended(code))
            os._exit(JVM_ENDED)

    def check(self) -> Checked:
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
                failure=Failure(what=what, why=str(error)[:500], fix=f"see the log of {self._name}", final=True)
            )

    def begin(self, begin: Begin) -> NodeContext:
        if self._welcome is None or self._topology is None or self._spark is None:
            raise RuntimeError("asked to begin before the session was up")
        home, run, disk = Home(Path(self._welcome.home)), self._welcome.run, Disk()
        layout = lay_out(self._topology, {name: op.stateful for name, op in begin.operators.items()})
        self._log = log = registry.open_log(self._log_place(run, home, disk, layout))
        place = CheckpointsPlace(run.config.checkpoints.url, home.path / "checkpoints", run.id, disk)
        self._checkpoints = checkpoints = stores.open_checkpoints(place)
        schemas = {source.name: source.source.schema for source in self._topology.sources}
        schemas |= {name: check.arrow_schema(op) for name, op in begin.operators.items()}
        return NodeContext(
            home=home.path,
            local=home.node(self._name),
            run=run.id,
            log=log,
            edge=SparkEdge(self._spark, home.path, disk, log, self._topology, layout, schemas, checkpoints),
            topology=self._topology,
            layout=layout,
            rhythm=begin.rhythm.anchored(time.monotonic(), begin.age_s),
            backlog=run.backlog,
            # A run that is as fast as it can be is always behind.
            load=NodeLoad(run.config.overload, counts=run.primaries_first and not run.fast),
            shipping=run.config.shipping,
        )

    def _log_place(self, run: RunSpec, home: Home, disk: Disk, layout: Layout) -> LogPlace:
        publishing = tuple(one for one in layout.slices if layout[one.operator].kind is not Kind.SINK)
        return LogPlace(run.config.log, home.log, home.node(self._name) / "bags", run.id, publishing, disk)

    def measure(self) -> None:
        self._usage = _usage(psutil.Process())

    def close(self) -> None:
        self._closing = True
        if self._log is not None:
            self._log.close()
        if self._checkpoints is not None:
            self._checkpoints.close()
        if self._spark is not None:
            self._spark.stop()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)


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
