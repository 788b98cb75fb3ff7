"""What slices cost their nodes. 1 is the primary of an operator with average load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from understudy.model.layout import Kind, Layout
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.snapshot import Assignment

# A query keeps a core busy; sources and sinks only copy rows.
PRIMARY_WEIGHTS = {Kind.OPERATOR: 1.0, Kind.SOURCE: 0.2, Kind.SINK: 0.2}

# What a secondary costs its node, against 1 for a slice that works.
SECONDARY_WEIGHTS = {
    Scheme.ACTIVE_REPLICATION: 1.0,
    Scheme.ACTIVE_STANDBY: 1.0,
    Scheme.PASSIVE_STANDBY_HOT: 0.3,
    Scheme.PASSIVE_STANDBY_COLD: 0.2,
    Scheme.DEPLOYED: 0.1,
}
MOVER_WEIGHT = 1.0
"""A mover works as its primary does."""
LEAST = 0.1
"""An idle query still takes memory and threads."""


@dataclass(frozen=True)
class Weights:
    """`loads` is the CPU that primaries of operators were measured to use. Without it all of them count the same."""

    layout: Layout
    loads: Mapping[SliceId, float] = field(default_factory=lambda: MappingProxyType({}))

    def primary(self, slice_id: SliceId) -> float:
        kind, load = self.layout[slice_id.operator].kind, self.loads.get(slice_id)
        if kind is not Kind.OPERATOR or load is None or self._average <= 0:
            return PRIMARY_WEIGHTS[kind]
        return max(LEAST, load / self._average)

    def secondary(self, assignment: Assignment) -> float:
        return SECONDARY_WEIGHTS.get(assignment.scheme, 0.0) * self.primary(assignment.slice)

    def burdens(self, assignments: Iterable[Assignment]) -> dict[str, float]:
        """What secondaries and movers cost every node."""
        found: dict[str, float] = {}
        for assignment in assignments:
            if assignment.secondary is not None:
                name = assignment.secondary.node
                found[name] = found.get(name, 0.0) + self.secondary(assignment)
            if assignment.moving is not None:
                name = assignment.moving.node
                found[name] = found.get(name, 0.0) + MOVER_WEIGHT
        return found

    @cached_property
    def _average(self) -> float:
        return sum(self.loads.values()) / len(self.loads) if self.loads else 0.0
