"""Bars of a minute with volume-weighted prices, and signals when a bar is unlike those before it.

    understudy run examples/market/app.py --nodes 3 --epochs 60

Trades become bars (open, high, low, close, volume, VWAP) in windows; bars become signals with the last ten bars of a
symbol as state. An epoch of a second stands for 30 seconds (--set speed=30) of trades, which are made up at --set
rate=400 a second; or read from a CSV file with a header and the columns id, symbol, at, price (in cents) and quantity,
sorted by time (--set data=FILE).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from market_signals import Bar, Past
from market_trades import SCHEMA, trades
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

import understudy as us

EPOCH_S = 1.0
app = us.Topology("market", epoch=EPOCH_S)

DATA = us.setting("data", "")
SPEED = us.setting("speed", 30.0)
RATE, SEED = us.setting("rate", 400.0), us.setting("seed", 0)


def make(epoch: int, _slice: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return trades(epoch, rows, SPEED * EPOCH_S, rng)


traded = app.source(
    "trades",
    us.sources.Files(DATA, "csv", SCHEMA, event_time="at", speed=SPEED, options={"header": True})
    if DATA
    else us.sources.Generator(make, SCHEMA, rate=RATE, seed=SEED),
)


# Every price on a screen comes from here, and the state is small: two copies that both work and both publish.
@app.operator(traded, key="symbol", slices=2, recovery=us.Recovery(scheme="active_replication"))
def bars(trades: DataFrame) -> DataFrame:
    """A bar of every symbol and minute, delivered once, when no trade of that minute can be missing."""
    minutes = trades.withWatermark("at", "30 seconds").groupBy(F.window("at", "1 minute"), "symbol")
    order = F.struct("at", "id")  # the first and the last of equal times are told apart by their numbers
    found = minutes.agg(
        F.min_by("price", order).alias("open"),
        F.max("price").alias("high"),
        F.min("price").alias("low"),
        F.max_by("price", order).alias("close"),
        F.sum("quantity").alias("volume"),
        F.sum(F.col("price") * F.col("quantity")).alias("notional"),
    )
    vwap = F.expr("notional div volume").alias("vwap")
    return found.select("symbol", F.col("window.start").alias("start"), *found.columns[2:], vwap)


def watch(key: tuple[Any, ...], parts: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """The bars of one symbol, in order of time, against the ten before."""
    past = Past.restored(state.get[0] if state.exists else b"")
    new = pd.concat(list(parts)).sort_values("start")
    found = [
        (key[0], start, signal.name, signal.value)
        for start, *values in new[["start", *Bar._fields]].itertuples(index=False, name=None)
        for signal in past.add(Bar(*values))
    ]
    state.update((past.stored(),))
    yield pd.DataFrame(found, columns=["symbol", "start", "signal", "value"])


# Signals are acted upon at once; the ten bars behind them wait in memory on a second node.
@app.operator(bars, recovery=us.Recovery(scheme="passive_standby_hot"))
def signals(bars: DataFrame) -> DataFrame:
    """A row for everything that is unusual about a bar."""
    output = "symbol string, start timestamp, signal string, value long"
    by_symbol = bars.groupBy("symbol")
    # Bytes, because PySpark 4.3 cannot read a state that holds arrays: it puts the JSON of the schema into lower case.
    return by_symbol.applyInPandasWithState(watch, output, "past binary", "append", GroupStateTimeout.NoTimeout)


app.sink("bars-out", bars, us.sinks.JsonLines("bars"))
app.sink("signals-out", signals, us.sinks.JsonLines("signals"))
