"""Trades of a few shares: prices that wander, and now and then a minute in which everybody wants the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SCHEMA = "id long, symbol string, at timestamp, price long, quantity int"
"""Prices are in cents: whole numbers add up in any order."""

START_S = 1_767_344_400  # 2026-01-02 09:00:00 UTC
SYMBOLS = ("OAK", "ASH", "ELM", "FIR", "YEW", "BAY")
RUSH_EVERY = 23  # a minute of a symbol out of so many has news
LATE = 0.03  # share of trades that are reported late
LATE_MS = 20_000


def trades(epoch: int, rows: int, seconds: float, rng: np.random.Generator) -> pa.Table:
    """The trades reported in an epoch that stands for so many seconds, some of them late.

    The fair price of a symbol is a function of its time alone, so it goes on where the epoch before ended. With news
    it is three per cent off and six times as much is traded.
    """
    symbol = rng.integers(0, len(SYMBOLS), rows)
    late = np.where(rng.random(rows) < LATE, rng.integers(0, LATE_MS, rows), 0)
    ms = np.sort(rng.integers(int(epoch * seconds * 1000), max(int((epoch + 1) * seconds * 1000), 1), rows))
    ms = np.maximum(ms - late, 0)
    news = (ms // 60_000 * 31 + symbol * 17) % RUSH_EVERY == 0
    price = _fair(symbol, ms) * np.where(news, 1 + 0.03 * (-1) ** symbol, 1.0) * (1 + rng.normal(0, 0.0004, rows))
    quantity = rng.integers(1, 20, rows) * 10 * np.where(news, 6, 1)
    return pa.table(
        {
            "id": epoch * 1_000_000 + np.arange(rows),
            "symbol": np.array(SYMBOLS)[symbol],
            "at": pa.array(START_S * 1000 + ms, pa.timestamp("ms", tz="UTC")),
            "price": np.round(price).astype(np.int64),
            "quantity": pa.array(quantity, pa.int32()),
        }
    )


def _fair(symbol: NDArray[np.int64], ms: NDArray[np.int64]) -> NDArray[np.float64]:
    """Waves of two hours and of eleven minutes around a price of its own."""
    hours = ms / 3.6e6
    slow, quick = np.sin(np.pi * hours + symbol), np.sin(2 * np.pi * hours * 60 / 11 + 2 * symbol)
    return np.asarray((5000 + 3000 * symbol) * (1 + 0.02 * slow + 0.002 * quick), np.float64)
