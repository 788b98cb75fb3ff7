"""Ranges of offsets: what an epoch of a partitioned log holds, decided without the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Offsets = Mapping[int, int]
"""The offset of every partition: of the next record, not of the last one."""


@dataclass(frozen=True)
class Span:
    """An epoch's range of offsets per partition, its end excluded."""

    begin: Offsets
    end: Offsets

    def to_json(self) -> dict[str, Any]:
        """As it is recorded: where an epoch begins is kept too, because that may depend on the moment."""
        return {"from": _to_text(self.begin), "to": _to_text(self.end)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Span:
        return cls(_to_numbers(value["from"]), _to_numbers(value["to"]))

    def share(self, slice_index: int, slices: int) -> dict[int, tuple[int, int]]:
        """The ranges that one of several slices reads: partitions are dealt out in turn.

        Examples
        --------
        >>> Span({0: 5, 1: 0, 2: 7}, {0: 9, 1: 0, 2: 8}).share(0, 2)
        {0: (5, 9), 2: (7, 8)}
        """
        return {p: (self.begin[p], end) for p, end in sorted(self.end.items()) if p % slices == slice_index}

    def lost(self) -> dict[int, tuple[int, int]]:
        """Partitions that end before they begin: the log was shortened or made anew."""
        return {p: (begin, begin) for p, begin in self.begin.items() if self.end.get(p, -1) < begin}


def limited(span: Span, most: int | None) -> Span:
    """The part of a span with at most so many offsets, shared out among partitions by what they have.

    Examples
    --------
    >>> limited(Span({0: 0, 1: 0}, {0: 30, 1: 10}), 8).end
    {0: 6, 1: 2}
    >>> limited(Span({0: 0, 1: 0}, {0: 30, 1: 1}), 5).end
    {0: 5, 1: 0}
    """
    waiting = {partition: span.end[partition] - begin for partition, begin in span.begin.items()}
    total = sum(waiting.values())
    if most is None or total <= most:
        return span
    taken = {partition: most * there // total for partition, there in waiting.items()}
    # What rounding left over goes to those who were cut the most.
    by_rest = sorted(waiting, key=lambda partition: (-(most * waiting[partition] % total), partition))
    for partition in by_rest[: most - sum(taken.values())]:
        taken[partition] += 1
    return Span(span.begin, {partition: begin + taken[partition] for partition, begin in span.begin.items()})


def _to_text(offsets: Offsets) -> dict[str, int]:
    return {str(partition): offset for partition, offset in sorted(offsets.items())}


def _to_numbers(offsets: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): int(offset) for partition, offset in offsets.items()}
