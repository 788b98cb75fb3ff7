"""Rows of one source: a key, a time and a value. Every source has keys of its own, so every key has one way to go."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SCHEMA = "key long, at timestamp, value long"
START_S = 1_767_225_600  # 2026-01-01 00:00:00 UTC
PAIRED = 8  # three levels divide a key by two each


def keys_of(rate: float) -> int:
    """Keys of a source, about one for every row of a second: a multiple of eight, so that no pair spans two sources.

    >>> keys_of(100.0), keys_of(0.5)
    (96, 8)
    """
    return max(int(rate) // PAIRED, 1) * PAIRED


def rows_of(source: int, epoch: int, rows: int, seconds: float, keys: int, rng: np.random.Generator) -> pa.Table:
    """The rows of an epoch that lasts so many seconds."""
    at = START_S + (epoch + rng.random(rows)) * seconds
    return pa.table(
        {
            "key": source * keys + rng.integers(0, keys, rows),
            "at": pa.array((at * 1000).astype(np.int64), pa.timestamp("ms", tz="UTC")),
            "value": rng.integers(0, 1000, rows),
        }
    )
