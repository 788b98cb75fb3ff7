"""The market example: its trades, its signals, its oracle, and a run with a kill against that oracle."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples.running import made, module, read, run_with_a_kill, slices_of
from tests.oracles import market as oracle
from tests.oracles.lines import differences
from tests.oracles.rows import Row

START = datetime(2026, 1, 2, 9, tzinfo=UTC)
FIELDS = ("high", "low", "close", "volume", "notional")


def trade(number: int, second: float, price: int, quantity: int = 10, symbol: str = "OAK") -> Row:
    at = START + timedelta(seconds=second)
    return {"id": number, "symbol": symbol, "at": at, "price": price, "quantity": quantity}


def quiet(**changes: int) -> Row:
    return {"high": 102, "low": 98, "close": 100, "volume": 10, "notional": 1000, **changes}


def test_a_bar_is_made_of_the_trades_of_a_minute() -> None:
    rows = [trade(2, 0, 100), trade(1, 0, 90, 30), trade(3, 59.9, 95), trade(4, 59, 110)]
    assert oracle.bar("OAK", START, rows) == {
        "symbol": "OAK",
        "start": "2026-01-02T09:00:00Z",
        "open": 90,
        "high": 110,
        "low": 90,
        "close": 95,
        "volume": 60,
        "notional": 5750,
        "vwap": 95,
    }


def test_a_bar_is_over_when_half_a_minute_of_the_next_has_come() -> None:
    epochs = [[trade(1, 10, 100)], [trade(2, 89, 101)], [trade(3, 50, 99), trade(4, 90, 101)], [], []]
    assert [[(row["low"], row["close"]) for row in rows] for rows in oracle.bars(epochs)] == [
        [],
        [],
        [],
        [(99, 99)],
        [],
    ]


def test_a_trade_of_a_bar_that_is_over_is_dropped() -> None:
    epochs = [[trade(1, 10, 100), trade(2, 95, 101)], [], [trade(3, 50, 1)], [trade(4, 200, 100)], []]
    assert [[row["low"] for row in rows] for rows in oracle.bars(epochs)] == [[], [100], [], [], [101]]


@pytest.mark.parametrize(
    ("changes", "signals"),
    [
        ({}, {}),
        ({"volume": 30}, {"busy": 300}),
        ({"volume": 29}, {}),
        ({"close": 102}, {"stretched": 20}),
        ({"close": 103}, {"up": 1, "stretched": 30}),
        ({"close": 97}, {"down": 1, "stretched": -30}),
    ],
)
def test_signals_compare_with_the_bars_before(changes: dict[str, int], signals: dict[str, int]) -> None:
    assert oracle.unusual(quiet(**changes), [quiet()] * 4) == signals
    assert oracle.unusual(quiet(**changes), [quiet()] * 3) == {}, "too few to compare with"
    assert oracle.unusual(quiet(**changes), [quiet(high=999, volume=999), *[quiet()] * 10]) == signals, "ten count"


BARS = st.lists(
    st.builds(
        lambda low, up, down, volume: quiet(
            low=low, high=low + up + down, close=low + down, volume=volume, notional=(low + down) * volume
        ),
        st.integers(90, 110),
        st.integers(0, 5),
        st.integers(0, 5),
        st.integers(1, 40),
    ),
    max_size=25,
)


@given(BARS)
def test_the_past_remembers_enough(bars: list[Row]) -> None:
    model: Any = module("market", "market_signals")
    stored = b""
    for number, row in enumerate(bars):
        past = model.Past.restored(stored)
        found = past.add(model.Bar(*(row[field] for field in FIELDS)))
        stored = past.stored()
        assert {signal.name: signal.value for signal in found} == oracle.unusual(row, bars[:number])


def test_generated_trades_have_news() -> None:
    epochs = made("market", 80, {"rate": "60", "seed": "4"})
    out = oracle.expected(epochs, lambda _: 0, 1)
    bars = [row for rows in out["bars"] for row in rows]
    assert 6 * 36 < len(bars) <= 6 * 40
    signals = Counter(row["signal"] for rows in out["signals"] for row in rows)
    assert set(signals) == {"busy", "up", "down", "stretched"}
    assert sum(signals.values()) < len(bars)
    for symbol in {row["symbol"] for row in bars}:
        prices = [row["vwap"] for row in bars if row["symbol"] == symbol]
        assert max(prices) < 1.12 * min(prices)


def test_a_file_of_trades_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trades.csv"
    path.write_text("id,symbol,at,price,quantity\n1,OAK,2026-01-02 09:00:00,5000,10\n2,ASH,2026-01-02 09:00:45,1,2\n")
    assert read("market", 2, {"data": str(path)}) == [[trade(1, 0, 5000)], [trade(2, 45, 1, 2, "ASH")]]


@pytest.mark.spark
def test_a_killed_node_changes_nothing(tmp_path: Path) -> None:
    settings = {"rate": "100", "speed": "60", "seed": "4"}
    report = run_with_a_kill("market", tmp_path, settings)
    epochs = made("market", report.epochs, settings)
    symbols = pa.array(sorted({row["symbol"] for rows in epochs for row in rows}))
    slice_of = slices_of("symbol", symbols, 2)
    assert set(slice_of.values()) == {0, 1}
    expected = oracle.expected(epochs, lambda symbol: slice_of[symbol], 2)
    assert sum(map(len, expected["bars"])) > 20
    assert sum(map(len, expected["signals"])) > 2
    assert differences(tmp_path, expected) == []
