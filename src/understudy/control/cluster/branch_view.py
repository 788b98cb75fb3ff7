"""What the rules of tentative branches look at: who works, who is heard, and who reads from whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from understudy.control.cluster.snapshot import Snapshot
from understudy.model.capabilities import ALL
from understudy.model.layout import Kind, Layout
from understudy.model.messages import ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.snapshot import Assignment, NodeView

HEARD_S = 0.5
"""A node that was heard so lately is not silent, however soon tentative output shall begin."""


@dataclass(frozen=True)
class View:
    """A snapshot of a run that is under way; `assigned` is what holds after this decision."""

    snapshot: Snapshot
    layout: Layout
    assigned: Mapping[SliceId, Assignment]

    @property
    def nodes(self) -> Mapping[str, NodeView]:
        return self.snapshot.by_name

    # -- replicas and nodes

    def primary(self, slice_id: SliceId) -> ReplicaStatus | None:
        """The primary of a slice, if its node is there and was heard to host it."""
        current = self.assigned.get(slice_id)
        node = self.nodes.get(current.node) if current else None
        if current is None or node is None or not node.connected:
            return None
        return node.hosting(slice_id, current.generation)

    def is_covered(self, assignment: Assignment) -> bool:
        """Whether a secondary publishes at the head whatever happens to the primary."""
        placed = assignment.secondary
        sends = assignment.standing_in or assignment.scheme is Scheme.ACTIVE_REPLICATION
        node = self.nodes.get(placed.node) if placed else None
        if placed is None or not sends or node is None or not node.connected:
            return False
        found = node.hosting(assignment.slice, placed.generation)
        return found is not None and found.capabilities == ALL and not found.late and not found.throttled

    def is_silent(self, node: NodeView) -> bool:
        """Silent for too long, and for longer than the others: when all are late, the machine is full."""
        quiet_s = max(node.silent_s, node.jvm_silent_s)
        too_long = quiet_s >= max(self.snapshot.tentative_s or 0.0, HEARD_S)
        return too_long and self.snapshot.detector.suspects(node, self.nodes.values())

    @cached_property
    def hosts(self) -> tuple[NodeView, ...]:
        """Nodes that can work for a branch now."""
        there = (node for node in self.nodes.values() if node.connected and node.ready)
        return tuple(node for node in there if not self.is_silent(node))

    def is_heard(self, slice_id: SliceId) -> bool:
        """Whether the node of its primary can work for a branch."""
        return self.assigned[slice_id].node in {node.name for node in self.hosts}

    def has_begun(self) -> bool:
        """Whether every sink has delivered something since the run was started or resumed: then all slices have
        worked."""
        return min(self.snapshot.delivered.values(), default=0) > self.snapshot.first_epoch

    # -- who reads from whom

    def downstream(self, start: Iterable[SliceId], barred: frozenset[SliceId] = frozenset()) -> set[SliceId]:
        """Everybody who reads from these slices, directly or not, without passing one that is barred."""
        found: set[SliceId] = set()
        todo = list(start)
        while todo:
            for reader in self.layout.readers(todo.pop()):
                if reader not in found and reader not in barred:
                    found.add(reader)
                    todo.append(reader)
        return found

    def fed(self, missing: Iterable[SliceId]) -> set[SliceId]:
        """Who gets rows of a source without passing a missing slice."""
        barred = frozenset(missing)
        sources = {one for one in self.layout.of_kind(Kind.SOURCE) if one not in barred}
        return self.downstream(sources, barred)

    def sinks(self, missing: Iterable[SliceId]) -> list[SliceId]:
        """The sinks that lack something and take tentative output."""
        below, takers = self.downstream(missing), self.snapshot.tentative_sinks
        return [one for one in self.layout.of_kind(Kind.SINK) if one in below and one.operator in takers]

    def is_worthwhile(self, missing: tuple[SliceId, ...]) -> bool:
        """Whether a tentative sink gets rows of a source without passing a missing slice, and lacks others."""
        goal, sinks = self.snapshot.goal, self.sinks(missing)
        if goal is not None and all(self.snapshot.delivered.get(sink.operator, 0) >= goal for sink in sinks):
            return False
        return bool(self.fed(missing).intersection(sinks))

    def forkable(self, missing: Iterable[SliceId]) -> set[SliceId]:
        """Operator slices that read from these, directly or not, where their primary's node is heard."""
        operators = (one for one in self.downstream(missing) if self.layout[one.operator].kind is Kind.OPERATOR)
        return {one for one in operators if self.is_heard(one)}
