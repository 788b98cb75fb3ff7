"""Rates from counters: two looks at a run give the rows a second and the CPU of every node between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from understudy.model.view import RunState

SMOOTHING_S = 2.0


@dataclass(frozen=True)
class Counters:
    """What a look counted, at a time: rows of every replica that reads from outside, CPU of every node."""

    at: float
    rows: dict[tuple[str, int], int] = field(default_factory=dict)
    cpu_s: dict[str, float] = field(default_factory=dict)


def count(state: RunState, at: float, sources: frozenset[str]) -> Counters:
    rows = {
        (replica.slice, replica.generation): replica.rows_out
        for node in state.nodes
        for replica in node.replicas
        if replica.lead and replica.slice.partition("[")[0] in sources
    }
    return Counters(at, rows, {node.name: node.cpu_s for node in state.nodes})


def rows_per_s(before: Counters, now: Counters) -> float:
    """A replica that was not there before starts from nothing, one that is gone no longer counts."""
    grown = sum(max(0, rows - before.rows.get(key, 0)) for key, rows in now.rows.items())
    return grown / (now.at - before.at) if now.at > before.at else 0.0


def cores(before: Counters, now: Counters, node: str) -> float:
    """CPU in use, in cores. A node that came back counts from zero again."""
    if now.at <= before.at or node not in before.cpu_s:
        return 0.0
    return max(0.0, now.cpu_s.get(node, 0.0) - before.cpu_s[node]) / (now.at - before.at)
