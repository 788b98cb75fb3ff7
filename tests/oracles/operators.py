"""Operators without event time: a filter, sums per key, and any function of a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.oracles.rows import Epochs, Output, Row, counted


def selected(epochs: Epochs, keep: Callable[[Row], bool], take: Callable[[Row], tuple[Any, ...]]) -> Output:
    """A stateless operator: of the rows that are kept, what is taken."""
    return counted([[take(row) for row in rows if keep(row)] for rows in epochs])


def sums(epochs: Epochs, key: str, value: str, lost: frozenset[int] = frozenset()) -> list[dict[Any, tuple[int, int]]]:
    """For every epoch and key it touches, how many rows the key has had so far and the sum of their values.

    Epochs that are `lost` bring nothing.
    """
    count: Counter[Any] = Counter()
    total: Counter[Any] = Counter()
    found: list[dict[Any, tuple[int, int]]] = []
    for epoch, rows in enumerate(epochs):
        if epoch in lost:
            found.append({})
            continue
        for row in rows:
            count[row[key]] += 1
            total[row[key]] += row[value]
        found.append({row[key]: (count[row[key]], total[row[key]]) for row in rows})
    return found


def listed(touched: list[dict[Any, tuple[int, int]]], take: Callable[[Any, int, int], tuple[Any, ...]]) -> Output:
    """What `sums` found, as rows of (key, count, sum)."""
    return counted([[take(key, *found) for key, found in epoch.items()] for epoch in touched])
