"""Rates from counters: two looks at a run give the rows a second and the CPU of every node between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from understudy.model.names import SliceId
from understudy.model.view import RunState


@dataclass(frozen=True)
class Counters:
    """What a look counted, at a time: rows of every replica that reads from outside, CPU of every node."""

    at: float
    rows: dict[tuple[SliceId, int], int] = field(default_factory=dict)
    cpu_s: dict[str, float] = field(default_factory=dict)


def count(state: RunState, at: float, sources: frozenset[str]) -> Counters:
    rows = {
        (replica.slice, replica.generation): replica.rows_out
        for node in state.nodes
        for replica in node.replicas
        if replica.primary and replica.slice.operator in sources
    }
    return Counters(at, rows, {node.name: node.cpu_s for node in state.nodes})


def rows_per_s(looks: Sequence[Counters]) -> float:
    """From the first change to the last: rows come an epoch at a time, and a window cuts epochs anywhere."""
    changes = [later for earlier, later in pairwise(looks) if later.rows != earlier.rows]
    ends = (changes[0], changes[-1]) if len(changes) > 1 else (looks[0], looks[-1])
    return _rows(*ends) / (ends[1].at - ends[0].at) if ends[1].at > ends[0].at else 0.0


def _rows(before: Counters, now: Counters) -> int:
    """A replica that was not there before starts from nothing, one that is gone no longer counts."""
    return sum(max(0, rows - before.rows.get(key, 0)) for key, rows in now.rows.items())


def cores(before: Counters, now: Counters, node: str) -> float:
    """CPU in use, in cores. A node that came back counts from zero again."""
    if now.at <= before.at or node not in before.cpu_s:
        return 0.0
    return max(0.0, now.cpu_s.get(node, 0.0) - before.cpu_s[node]) / (now.at - before.at)
