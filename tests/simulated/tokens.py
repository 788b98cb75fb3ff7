"""Rows as numbers. What an epoch of a slice must be, computed from the layout alone: the oracle of the simulation."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from understudy.model.layout import Kind, Layout
from understudy.model.names import SliceId

_PRIME = (1 << 61) - 1


def mix(*parts: int) -> int:
    """One number that depends on all of them and on their order."""
    found = 1469598103934665603
    for part in parts:
        found = (found * 1099511628211 + part + 1) % _PRIME
    return found


def name_token(name: str) -> int:
    return zlib.crc32(name.encode())


Cuts = Mapping[tuple[str, int], int]
"""Where every epoch of a live source ended, by source and epoch."""


def source_token(slice_id: SliceId, epoch: int, *cut: int) -> int:
    """What a source slice reads in an epoch. For a live source that depends on where it was cut."""
    return mix(name_token(slice_id.operator), slice_id.index, epoch, *cut)


def next_state(state: int, epoch: int, inputs: Sequence[int]) -> int:
    return mix(state, epoch, *inputs)


def output_token(slice_id: SliceId, epoch: int, inputs: Sequence[int], state: int) -> int:
    return mix(name_token(slice_id.operator), slice_id.index, epoch, state, *inputs)


@dataclass(frozen=True)
class Oracle:
    """What a run without failures delivers, given where its live sources were cut the first time."""

    layout: Layout
    cuts: Cuts = field(default_factory=dict)

    def delivered(self, epochs: int) -> dict[str, list[int]]:
        """For every sink the token of each epoch."""
        states: dict[SliceId, int] = {}
        found: dict[str, list[int]] = {sink.operator: [] for sink in self.layout.of_kind(Kind.SINK)}
        for epoch in range(epochs):
            made: dict[SliceId, int] = {}
            for slice_id in self._in_order:
                kind = self.layout[slice_id.operator].kind
                inputs = [mix(made[c.upstream], c.part) for c in self.layout.channels(slice_id)]
                if kind is Kind.SOURCE:
                    made[slice_id] = source_token(slice_id, epoch, *self._cut(slice_id.operator, epoch))
                elif kind is Kind.SINK:
                    found[slice_id.operator].append(mix(*inputs))
                else:
                    made[slice_id] = self._operate(slice_id, epoch, inputs, states)
        return found

    def _cut(self, source: str, epoch: int) -> tuple[int, ...]:
        end = self.cuts.get((source, epoch))
        return () if end is None else (self.cuts.get((source, epoch - 1), 0), end)

    def _operate(self, slice_id: SliceId, epoch: int, inputs: list[int], states: dict[SliceId, int]) -> int:
        state = states.get(slice_id, 0)
        if self.layout[slice_id.operator].stateful:
            state = states[slice_id] = next_state(state, epoch, inputs)
        return output_token(slice_id, epoch, inputs, state)

    @cached_property
    def _in_order(self) -> list[SliceId]:
        """Every slice after those it reads."""
        placed: list[SliceId] = []
        left = list(self.layout.slices)
        while left:
            ready = [s for s in left if all(c.upstream in placed for c in self.layout.channels(s))]
            placed += ready
            left = [s for s in left if s not in ready]
        return placed
