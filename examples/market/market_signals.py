"""Signals that a bar gives against the bars before it. Plain Python, no Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

LOOK_BACK = 10  # bars
ENOUGH = 4  # bars before a signal means anything
BUSY = 3  # times the usual volume
STRETCHED = 20  # in a thousand, from the volume-weighted price of the bars before


class Bar(NamedTuple):
    """What a bar must tell: prices in cents; `notional` is the sum of price times quantity."""

    high: int
    low: int
    close: int
    volume: int
    notional: int


class Signal(NamedTuple):
    """What a bar is, and by how much: times 100 for busy, cents for breaks, in a thousand for stretched."""

    name: str
    value: int


class Past:
    """The last ten bars of a symbol; kept as the bytes of 64-bit numbers between two epochs.

    >>> past = Past()
    >>> quiet = [past.add(Bar(high=102, low=98, close=100, volume=10, notional=1000)) for _ in range(4)]
    >>> past.add(Bar(high=105, low=101, close=104, volume=30, notional=3090))
    [Signal(name='busy', value=300), Signal(name='up', value=2), Signal(name='stretched', value=40)]
    """

    def __init__(self, bars: Iterable[Bar] = ()) -> None:
        self._bars = list(bars)

    @classmethod
    def restored(cls, stored: bytes) -> Past:
        return cls(Bar(*values) for values in np.frombuffer(stored, np.int64).reshape(-1, len(Bar._fields)).tolist())

    def stored(self) -> bytes:
        return np.array(self._bars, np.int64).tobytes()

    def add(self, bar: Bar) -> list[Signal]:
        """Compares a bar with those before it, then remembers it."""
        found = self._signals(bar) if len(self._bars) >= ENOUGH else []
        self._bars = [*self._bars, bar][-LOOK_BACK:]
        return found

    def _signals(self, bar: Bar) -> list[Signal]:
        found = []
        volume = sum(past.volume for past in self._bars)
        if bar.volume * len(self._bars) >= BUSY * volume:
            found.append(Signal("busy", 100 * bar.volume * len(self._bars) // volume))
        highest, lowest = max(past.high for past in self._bars), min(past.low for past in self._bars)
        if bar.close > highest:
            found.append(Signal("up", bar.close - highest))
        if bar.close < lowest:
            found.append(Signal("down", lowest - bar.close))
        usual = sum(past.notional for past in self._bars) // volume
        if abs(bar.close - usual) * 1000 >= STRETCHED * usual:
            found.append(Signal("stretched", (bar.close - usual) * 1000 // usual))
        return found
