"""The streams that the documented queries read, and the queries themselves, from docs/queries.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

import understudy as us
from understudy.model.schema import parse

PAGE = Path(__file__).parents[1] / "docs" / "queries.md"
TRADES = parse("id long, symbol string, at timestamp, price double, quantity int, note string")
QUOTES = parse("symbol string, at timestamp, bid double")
NOTES = parse("kind string, made timestamp, seen timestamp")
SYMBOLS = ("OAK", "ASH", "ELM", "ALM")
START = datetime(2026, 1, 2, 9, tzinfo=UTC)


def documented() -> dict[int, str]:
    """The numbered queries of the page."""
    found = re.findall(r"^### (\d+)\. [^\n]+\n\n```sql\n(.+?)```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return {int(number): text.strip() for number, text in found}


def market(slices: int = 1) -> us.Topology:
    return reading({"trades": TRADES, "quotes": QUOTES, "notes": NOTES}, slices)


def reading(schemas: Mapping[str, pa.Schema], slices: int = 1) -> us.Topology:
    """A topology of sources that nobody opens."""

    def nobody(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
        raise NotImplementedError

    app = us.Topology("market")
    for name, schema in schemas.items():
        app.source(name, us.sources.Generator(nobody, schema), slices=slices)
    return app


def trades(epochs: int, rows: int, seed: int) -> list[pa.Table]:
    """Epochs of two seconds of trades, a few of them late; no two of an epoch have the same time."""
    rng = np.random.default_rng(seed)
    found = []
    for epoch in range(epochs):
        columns = {
            "id": np.arange(rows) + epoch * rows,
            "symbol": rng.choice(SYMBOLS, rows),
            "at": _times(epoch, rows, rng),
            "price": rng.integers(85, 116, rows).astype(float),
            "quantity": pa.array(rng.integers(1, 4, rows), pa.int32()),
            "note": pa.array([("fine" if one else None) for one in rng.random(rows) < 0.3], pa.string()),
        }
        found.append(pa.table(columns).cast(TRADES))
    return found


def quotes(epochs: int, rows: int, seed: int) -> list[pa.Table]:
    rng = np.random.default_rng(seed)
    return [
        pa.table(
            {
                "symbol": rng.choice(SYMBOLS, rows),
                "at": _times(epoch, rows, rng),
                "bid": rng.integers(90, 111, rows).astype(float),
            }
        ).cast(QUOTES)
        for epoch in range(epochs)
    ]


def _times(epoch: int, rows: int, rng: np.random.Generator) -> pa.Array:
    micros = 2_000_000 * epoch + rng.choice(2_000_000, rows, replace=False)
    late = np.where(rng.random(rows) < 0.1, rng.integers(0, 2_000_000, rows), 0)
    start = int(START.timestamp() * 1_000_000)
    return pa.array(start + np.maximum(micros - late, 0), pa.timestamp("us", "UTC"))
