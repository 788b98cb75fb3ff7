"""Runs of consecutive epochs: as few numbers as possible for what may be a million epochs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Span = tuple[int, int]
"""The first epoch and the last."""


def span(epochs: range) -> tuple[Span, ...]:
    """A range as spans; an empty one as none."""
    return ((epochs.start, epochs.stop - 1),) if epochs else ()


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Sorted, without overlaps; spans that touch become one."""
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)


def members(spans: Iterable[Span]) -> Iterator[int]:
    return (epoch for first, last in spans for epoch in range(first, last + 1))
