"""A node's SparkSession: fast to start, silent, without child processes, bound to loopback."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import TYPE_CHECKING, Any

from pyspark.core.context import SparkContext
from pyspark.sql import SparkSession

from understudy.errors import Unavailable
from understudy.stream import java, launch, overlay
from understudy.stream.settings import is_local, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from understudy.stream.profile import Profile

__all__ = ["SparkSession", "await_executors", "check_master", "start", "stop_jvm"]

_held: list[int] = []

CONNECT_S = 5.0
EXECUTORS_S = 15.0


def start(
    name: str,
    master: str,
    profile: Profile,
    local_dir: Path,
    extra: Mapping[str, str] | None = None,
    *,
    archiving: Path | None = None,
) -> SparkSession:
    """Start the session of this process; a JVM that already runs here is used again, with its own options.

    With `archiving` the JVM writes there, when it ends, the classes it has loaded.
    """
    local_dir = local_dir.resolve()
    found = java.find()
    home = overlay.prepare(found)
    if not _held:
        _held.append(overlay.hold(home))
    chosen = settings(name, master, profile, local_dir, extra or {})
    if not is_local(master):
        # Executors elsewhere need the file system class as well.
        chosen["spark.jars"] = ",".join(filter(None, [chosen.get("spark.jars"), str(overlay.JAR)]))
    arguments = launch.arguments(home, profile, chosen, launch.temporary_directory(local_dir), archiving)
    builder = SparkSession.builder
    for key, value in chosen.items():
        builder = builder.config(key, value)
    with launch.environment(found, home, arguments, is_local(master)):
        return builder.getOrCreate()


def check_master(master: str) -> None:
    """Spark itself waits a minute for a standalone master that is not there."""
    if not master.startswith("spark://"):
        return
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        with contextlib.suppress(OSError, ValueError), socket.create_connection((host, int(port)), CONNECT_S):
            return
    raise Unavailable(
        f"there is no Spark master at {master}",
        why=f"nobody accepted a connection within {CONNECT_S:.0f} s",
        fix="start it, correct --master, or leave it out: nodes then work with local[1]",
    )


def await_executors(spark: SparkSession, master: str) -> None:
    """On a cluster, waits until the node has been given an executor; without one its queries would wait for ever."""
    if not is_local(master):
        context: Any = spark.sparkContext._jsc.sc()
        # The driver is one of those who have memory.
        await_first(lambda: context.getExecutorMemoryStatus().size() - 1, master)


def await_first(
    executors: Callable[[], int],
    master: str,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    deadline = clock() + EXECUTORS_S
    while executors() < 1:
        if clock() > deadline:
            raise Unavailable(
                f"{master} gave this node no executor",
                why=f"none has registered within {EXECUTORS_S:.0f} s: every node is an application of its own, and "
                "the first one takes all cores of a standalone cluster",
                fix="set spark.deploy.defaultCores on the master so that every node gets its share, start workers with "
                "free cores and memory, or leave --master out: nodes then work with local[1]",
            )
        sleep(0.1)


def stop_jvm(timeout_seconds: float = 60.0) -> None:
    """End the JVM of this process and wait for it; a session started afterwards gets a new one."""
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    # The gateway process lives as long as its standard input.
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout_seconds)
    SparkContext._gateway = None
    SparkContext._jvm = None
