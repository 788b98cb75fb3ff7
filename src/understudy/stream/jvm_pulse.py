"""Whether the JVM of this process lives: a pulse that it writes, and word of its end."""

from __future__ import annotations

import mmap
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.core.context import SparkContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUT_OF_MEMORY = 3
"""The exit code of a JVM under -XX:+ExitOnOutOfMemoryError."""


class Pulse:
    """Reads the number that the JVM counts up (`Pulse.java`). Only that it changes matters, so that the two clocks need
    not agree. Used by several threads."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(8))
        with path.open("rb") as file:
            self._file = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
        self._clock = clock
        self._lock = threading.Lock()
        self._last = self._file[:]
        self._changed_at = clock()

    def silent_s(self) -> float:
        """Since when the JVM has not moved, as far as anybody has looked; 0 if it has since the last look."""
        with self._lock:
            now, current = self._clock(), self._file[:]
            if current != self._last:
                self._last, self._changed_at = current, now
            return now - self._changed_at


def start_pulse(spark: SparkSession, path: Path) -> Pulse:
    pulse = Pulse(path)
    jvm: Any = spark._jvm
    jvm.org.understudy.Pulse.start(str(path))
    return pulse


def jvm_process() -> subprocess.Popen[bytes]:
    """The JVM of this process's session: PySpark started it, and our spark-submit became it."""
    gateway: Any = SparkContext._gateway
    process: subprocess.Popen[bytes] = gateway.proc
    return process


def watch_end(process: subprocess.Popen[bytes], ended: Callable[[int], None]) -> None:
    """Calls `ended` with the exit code as soon as the process ends, on a thread of its own."""
    threading.Thread(target=lambda: ended(process.wait()), name="jvm end", daemon=True).start()


def how_it_ended(code: int) -> str:
    if code < 0:
        try:
            return f"its JVM was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"its JVM was killed by signal {-code}"
    if code == OUT_OF_MEMORY:
        return "its JVM ran out of memory; give nodes more with --profile full, or make epochs shorter"
    return f"its JVM ended with exit code {code}"
