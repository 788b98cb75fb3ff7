"""What `examples/market` must deliver: bars from lists of trades, signals from lists of bars."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import chain

from tests.oracles.lines import Lines, iso
from tests.oracles.rows import Epochs, Row
from tests.oracles.windows import EARLY, late, watermarks

MINUTE, DELAY = timedelta(minutes=1), timedelta(seconds=30)


def bar(symbol: str, start: datetime, trades: list[Row]) -> Row:
    ordered = [trade["price"] for trade in sorted(trades, key=lambda trade: (trade["at"], trade["id"]))]
    volume = sum(trade["quantity"] for trade in trades)
    notional = sum(trade["price"] * trade["quantity"] for trade in trades)
    prices = {"open": ordered[0], "high": max(ordered), "low": min(ordered), "close": ordered[-1]}
    totals = {"volume": volume, "notional": notional, "vwap": notional // volume}
    return {"symbol": symbol, "start": iso(start), **prices, **totals}


def bars(epochs: Epochs) -> Lines:
    """The bars that are over in each epoch, of one slice: whose minute the watermark of its own trades has passed."""
    marks = watermarks((epochs, DELAY))
    kept: dict[tuple[str, datetime], list[Row]] = defaultdict(list)
    found: Lines = []
    for epoch, trades in enumerate(epochs):
        for trade in trades:
            start = EARLY + (trade["at"] - EARLY) // MINUTE * MINUTE
            if start + MINUTE > late(marks, epoch):
                kept[trade["symbol"], start].append(trade)
        over = [place for place in kept if place[1] + MINUTE <= marks[epoch]]
        found.append([bar(*place, kept.pop(place)) for place in over])
    return found


def unusual(new: Row, past: list[Row]) -> dict[str, int]:
    """What a bar is compared with the last ten before it, of which there must be four."""
    past = past[-10:]
    if len(past) < 4:
        return {}
    found = {}
    mean = Fraction(sum(one["volume"] for one in past), len(past))
    if new["volume"] >= 3 * mean:
        found["busy"] = math.floor(100 * new["volume"] / mean)
    highest, lowest = max(one["high"] for one in past), min(one["low"] for one in past)
    if new["close"] > highest:
        found["up"] = new["close"] - highest
    if new["close"] < lowest:
        found["down"] = lowest - new["close"]
    usual = sum(one["notional"] for one in past) // sum(one["volume"] for one in past)
    off = Fraction(1000 * (new["close"] - usual), usual)
    if abs(off) >= 20:
        found["stretched"] = math.floor(off)
    return found


def signals(bars: Lines) -> Lines:
    past: dict[str, list[Row]] = defaultdict(list)
    found: Lines = []
    for new in bars:
        rows: list[Row] = []
        for one in sorted(new, key=lambda one: one["start"]):
            told = unusual(one, past[one["symbol"]])
            rows += [
                {"symbol": one["symbol"], "start": one["start"], "signal": name, "value": value}
                for name, value in told.items()
            ]
            past[one["symbol"]].append(one)
        found.append(rows)
    return found


def expected(epochs: Epochs, slice_of: Callable[[str], int], slices: int) -> dict[str, Lines]:
    """`slice_of` says which slice has a symbol: each slice ends its bars by its own newest trade."""
    parts = [[[row for row in rows if slice_of(row["symbol"]) == n] for rows in epochs] for n in range(slices)]
    over = [list(chain(*together)) for together in zip(*map(bars, parts), strict=True)]
    return {"bars": over, "signals": signals(over)}
