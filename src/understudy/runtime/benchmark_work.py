"""The second detector of Zhang et al. 2010, on a node: while its host is busy, a fixed set of rows is timed."""

from __future__ import annotations

import logging
import threading
import time

import numpy as np
import psutil
import pyarrow as pa

from understudy.control.cluster.benchmarking import BenchmarkDetector, calibrated
from understudy.model.config import DEFAULTS, DetectorSection

logger = logging.getLogger(__name__)

ROWS = 20_000
ROUNDS = 20


class KnownWork:
    """`slow` says how the last round went. The set is small: a detector must not be the load it looks for."""

    def __init__(self, limits: DetectorSection = DEFAULTS.detector) -> None:
        self._limits = limits
        numbers = np.arange(ROWS)
        self._table = pa.table({"key": numbers * 7919 % 1000, "value": numbers})
        self.slow = False

    def start(self) -> None:
        threading.Thread(target=self._watch, name="known work", daemon=True).start()

    def _watch(self) -> None:
        detector = calibrated(
            [self._round() for _ in range(ROUNDS)], self._limits.benchmark_load, self._limits.benchmark_slowdown
        )
        logger.info("a round of known work takes %.1f ms", 1000 * detector.idle_s)
        psutil.cpu_percent()
        while True:
            time.sleep(self._limits.benchmark_every_s)
            self.slow = self._ask(detector)

    def _ask(self, detector: BenchmarkDetector) -> bool:
        load = psutil.cpu_percent() / 100
        return detector.asks(load) and detector.alarm(load, self._round())

    def _round(self) -> float:
        began = time.monotonic()
        self._table.group_by("key", use_threads=False).aggregate([("value", "sum"), ("value", "max")])
        return time.monotonic() - began
