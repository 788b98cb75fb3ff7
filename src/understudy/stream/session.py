"""A node's SparkSession: fast to start, silent, without child processes, bound to loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.core.context import SparkContext
from pyspark.sql import SparkSession

from understudy.stream import java, launch, overlay
from understudy.stream.settings import is_local, settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from understudy.stream.profile import Profile

__all__ = ["SparkSession", "start", "stop_jvm"]

_held: list[int] = []


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
