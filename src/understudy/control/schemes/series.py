"""What was measured lately, and what a careful person takes for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

WINDOW = 32
SMALL_BYTES = 1 << 20


@dataclass(frozen=True)
class Series:
    """The newest observations of one quantity. `high` and `low` are what estimates use, NaN before the first one.

    With the quantile 1 they are the largest and the smallest value; with 0.9, those that a tenth lies beyond. They are
    computed when something is added, because estimates are made far more often.
    """

    values: tuple[float, ...] = ()
    high: float = math.nan
    low: float = math.nan

    def add(self, value: float, quantile: float = 1.0, window: int = WINDOW) -> Series:
        values = (*self.values, value)[-window:]
        if quantile >= 1.0:
            return Series(values, max(values), min(values))
        ordered = sorted(values)
        beyond = math.floor((1.0 - quantile) * len(ordered))
        return Series(values, ordered[-1 - beyond], ordered[beyond])

    @property
    def known(self) -> bool:
        return bool(self.values)


NOTHING = Series()


@dataclass(frozen=True)
class Transfer:
    """So many bytes were brought from one place to another in so many seconds."""

    bytes: int
    seconds: float


@dataclass(frozen=True)
class Transfers:
    """How long bytes take to travel: a fixed part, seen in small transfers, and a rate, seen in large ones.

    Martin 2015 divides a size by the lowest throughput. A shipment of a few kilobytes is all fixed cost, and its
    "throughput" would make a gigabyte look like an hour, so small transfers count as seconds and not as a rate.
    """

    small_s: Series = NOTHING
    small_bytes: int = 0
    rate: Series = NOTHING

    def add(self, transfer: Transfer, quantile: float = 1.0) -> Transfers:
        if transfer.bytes < SMALL_BYTES:
            largest = max(self.small_bytes, transfer.bytes)
            return Transfers(self.small_s.add(transfer.seconds, quantile), largest, self.rate)
        # A clock that shows no time passed proves nothing but speed.
        rate = transfer.bytes / max(transfer.seconds, 1e-6)
        return Transfers(self.small_s, self.small_bytes, self.rate.add(rate, quantile))

    @property
    def known(self) -> bool:
        return self.small_s.known or self.rate.known

    def seconds(self, size: float) -> float:
        """NaN if nothing of the kind was ever seen; without large transfers the small ones are scaled, which is slow
        rather than fast."""
        fixed = self.small_s.high if self.small_s.known else 0.0
        if size <= 0:
            return fixed
        if self.rate.known:
            return fixed + size / self.rate.low
        if not self.small_s.known:
            return math.nan
        return fixed * max(1.0, size / max(self.small_bytes, 1))


UNSEEN = Transfers()
