"""Rows as dictionaries, epoch by epoch, and where they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

Row = dict[str, Any]
Epochs = list[list[Row]]
Output = list[Counter[tuple[Any, ...]]]
"""For every epoch, how often each row is delivered."""
Make = Callable[[int, int, int, np.random.Generator], pa.Table]


def before(epoch: int, rate: float, epoch_s: float) -> int:
    """Rows of a slice in all epochs below `epoch`; fractions of rows add up."""
    return int(Fraction(str(rate)) * Fraction(str(epoch_s)) * epoch)


def generated(make: Make, rate: float, seed: int, epochs: int, epoch_s: float, slices: int = 1) -> Epochs:
    """What `make` gives when it is called as `us.sources.Generator` documents it, slices one after the other."""

    def table(epoch: int, number: int) -> pa.Table:
        rows = before(epoch + 1, rate, epoch_s) - before(epoch, rate, epoch_s)
        chance = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number, epoch)))
        return make(epoch, number, rows, chance)

    return [[row for number in range(slices) for row in table(epoch, number).to_pylist()] for epoch in range(epochs)]


def dealt(rows: Sequence[Row], rate: float, epochs: int, epoch_s: float) -> Epochs:
    """The rows of a file that is replayed at a rate, by one slice."""
    ends = [before(epoch, rate, epoch_s) for epoch in range(epochs + 1)]
    return [list(rows[start:end]) for start, end in pairwise(ends)]


def counted(epochs: Sequence[Sequence[tuple[Any, ...]]]) -> Output:
    return [Counter(rows) for rows in epochs]
