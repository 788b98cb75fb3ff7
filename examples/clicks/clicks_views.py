"""Page views shaped like those of a shop: visitors come, look around for some minutes, and few of them buy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SCHEMA = "user long, page string, at timestamp"
START_S = 1_767_225_600  # 2026-01-01 00:00:00 UTC
STAGES = ("product", "cart", "checkout", "paid")
"""The funnel: a visit passes them in this order, with anything in between."""
PAGES = ("home", "search", *STAGES)

# How likely each page is for a visitor who has just come and for one who is about to leave.
FIRST = np.array([0.45, 0.30, 0.24, 0.01, 0.0, 0.0])
LAST = np.array([0.05, 0.10, 0.30, 0.25, 0.18, 0.12])
STAY = 8  # epochs from the first possible view of a visitor to the last
VIEWS = 4  # of a visitor, on average
LATE = 0.05  # share of views that arrive late
LATE_S = 45


def views(epoch: int, rows: int, seconds: float, rng: np.random.Generator) -> pa.Table:
    """The views that arrive in an epoch that stands for so many seconds, a few of them late.

    Visitors are numbered in the order in which they come. Those of an epoch come from a window of numbers that moves
    on with the epoch: everybody is seen for eight epochs and returns half a thousand epochs later.
    """
    newcomers = max(rows // VIEWS, 1)
    visitor = rng.integers(0, newcomers * STAY, rows)
    age = 1 - visitor / (newcomers * STAY)  # the smallest numbers of the window came first
    chances = FIRST + age[:, None] * (LAST - FIRST)
    page = (rng.random((rows, 1)) > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
    at = (epoch + rng.random(rows)) * seconds - np.where(rng.random(rows) < LATE, rng.random(rows) * LATE_S, 0.0)
    return pa.table(
        {
            "user": (epoch * newcomers + visitor) % (newcomers * 500),
            "page": np.array(PAGES)[page],
            "at": pa.array(((START_S + np.maximum(at, 0.0)) * 1000).astype(np.int64), pa.timestamp("ms", tz="UTC")),
        }
    )
