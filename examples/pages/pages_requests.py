"""Requests shaped like those to the site of the World Cup of 1998: few pages are asked for again and again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SCHEMA = "server long, page long, at timestamp"
START_S = 1_767_225_600  # 2026-01-01 00:00:00 UTC
PAGES, SERVERS = 500, 30
ZIPF = 1.0  # how much more popular the first pages are
MATCH_S, MOVES = 1800, 40  # in every half-hour other pages are asked for, some of them the same as before

_WEIGHTS = 1 / np.arange(1, PAGES + 1) ** ZIPF
_UP_TO = np.cumsum(_WEIGHTS / _WEIGHTS.sum())


def requests(epoch: int, rows: int, seconds: float, rng: np.random.Generator) -> pa.Table:
    """The requests of an epoch that stands for so many seconds. Any server may answer any of them."""
    at = (epoch + rng.random(rows)) * seconds
    rank = np.minimum(np.searchsorted(_UP_TO, rng.random(rows)), PAGES - 1)
    return pa.table(
        {
            "server": rng.integers(0, SERVERS, rows),
            "page": (rank + (at // MATCH_S).astype(np.int64) * MOVES) % PAGES,
            "at": pa.array(((START_S + at) * 1000).astype(np.int64), pa.timestamp("ms", tz="UTC")),
        }
    )
