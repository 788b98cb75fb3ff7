"""Queries in text that read each other: a selection, and sequences with timers in event time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import understudy as us

SYMBOLS = ("OAK", "ASH", "ELM", "FIR", "YEW")
RATE, EPOCH_S = 60, 0.5


def make(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    """Times lie within the epoch's second, a few of them late; no two rows of an epoch have the same time."""
    late = np.where(rng.random(rows) < 0.1, rng.integers(0, 2_000_000, rows), 0)
    micros = epoch * 1_000_000 + rng.choice(1_000_000, rows, replace=False) - late
    return pa.table(
        {
            "symbol": rng.choice(SYMBOLS, rows),
            "at": pa.array(np.maximum(micros, 0), pa.timestamp("us", "UTC")),
            "price": pa.array(rng.integers(0, 100, rows), pa.int64()),
        }
    )


app = us.Topology("rises", epoch=EPOCH_S)
app.source("trades", us.sources.Generator(make, "symbol string, at timestamp, price long", rate=RATE, seed=7))
us.query(app, "SELECT * FROM trades WHERE price > 20", name="large")
rises = us.query(
    app,
    """
    SELECT a.symbol, a.at AS start, b.at, b.price - a.price AS rise
    FROM PATTERN a=large(price < 60) -> b=large(symbol = a.symbol AND price > a.price + 20)
    WITHIN 2 s LATE 500 ms
    """,
    name="rises",
)
app.sink("out", rises, us.sinks.Parquet("rises"))
