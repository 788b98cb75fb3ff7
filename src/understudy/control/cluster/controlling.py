"""The controller's part of a decision: for slices with an objective, the cheapest scheme that keeps it.

`schemes/controller.py` weighs all slices at once, every half second. What it chooses is suggested like everything else;
if the arbiter declines, the controller keeps the slice's old scheme in its memory and chooses again at its next turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from understudy.control.cluster.detector import Detector
from understudy.control.cluster.planned import at_most, is_planned
from understudy.control.cluster.requests import switched
from understudy.control.cluster.secondaries import strongest
from understudy.control.cluster.snapshot import Memory, Snapshot
from understudy.control.cluster.suggestions import Origin, Ruling, Suggestion
from understudy.control.schemes.controller import decide_schemes, remember_recovery
from understudy.control.schemes.history import History
from understudy.control.schemes.objectives import Memory as ControllerMemory
from understudy.control.schemes.objectives import Watched
from understudy.model.layout import Kind, Layout, Vertex
from understudy.model.snapshot import Assignment, NodeView


def learn(snapshot: Snapshot) -> Memory:
    """The memory with the recoveries that are over: a broken promise widens the margin of its slice."""
    kept = snapshot.memory.controller
    for one in snapshot.ended:
        kept = remember_recovery(kept, str(one.slice), one.error, snapshot.controller, one.at)
    return replace(snapshot.memory, controller=kept)


def control(assignments: Iterable[Assignment], snapshot: Snapshot, layout: Layout) -> tuple[list[Suggestion], Memory]:
    """The changes the controller suggests, and what it remembers if all of them are accepted."""
    memory = snapshot.memory
    if snapshot.scheme is not None or not _is_due(memory, snapshot):
        return [], memory
    watched = list(_watched(snapshot, layout))
    outcome = decide_schemes(watched, memory.controller, snapshot.controller, snapshot.at)
    memory = replace(
        memory,
        controller=outcome.memory,
        looked_at=snapshot.at,
        choices=MappingProxyType({choice.slice: choice for choice in outcome.decisions}),
    )
    changes = {choice.slice: choice for choice in outcome.changes}
    suggestions = [
        Suggestion(Origin.CONTROLLER, switched(one, choice.scheme, choice.ship_every), choice.sentence, choice)
        for one in assignments
        if (choice := changes.get(str(one.slice))) is not None
    ]
    return suggestions, memory


def unlearn(memory: Memory, before: ControllerMemory, ruling: Ruling) -> Memory:
    """The memory without the changes that were not accepted: their slices keep what they had."""
    if memory.controller is before:
        return memory
    changed = {choice.slice for choice in memory.choices.values() if choice.changed}
    refused = changed - {str(s) for s, one in ruling.accepted.items() if one.origin is Origin.CONTROLLER}
    kept = {name: held for name, held in memory.controller.held.items() if name not in refused}
    kept |= {name: held for name, held in before.held.items() if name in refused}
    return replace(memory, controller=ControllerMemory(MappingProxyType(kept)))


@dataclass(frozen=True)
class Surroundings:
    """What the recovery of a slice depends on besides the slice: how soon a loss is noticed, how many operator slices
    every node hosts, and whether there is a second node."""

    detect_s: float
    hosted: Mapping[str, int]
    free_node: bool

    def around(self, history: History, assignment: Assignment, vertex: Vertex) -> History:
        """The history with its surroundings; the same value if they have not changed."""
        now = {
            "detect_s": self.detect_s,
            "neighbours": self.hosted.get(assignment.node, 1) - 1,
            "free_node": self.free_node,
            "ship_every": assignment.ship_every or vertex.recovery.interval(assignment.scheme),
            "refresh_every": vertex.recovery.refresh_every,
        }
        same = all(getattr(history, name) == value for name, value in now.items())
        return history if same else replace(history, **now)  # type: ignore[arg-type]


def surroundings(
    assignments: Iterable[Assignment], nodes: Iterable[NodeView], layout: Layout, detector: Detector
) -> Surroundings:
    hosted = Counter(a.node for a in assignments if layout[a.slice.operator].kind is Kind.OPERATOR)
    return Surroundings(detector.usual_s, hosted, sum(node.ready and node.connected for node in nodes) > 1)


def _is_due(memory: Memory, snapshot: Snapshot) -> bool:
    return memory.looked_at is None or snapshot.at - memory.looked_at >= snapshot.controller.every_s


def _watched(snapshot: Snapshot, layout: Layout) -> Iterator[Watched]:
    for assignment in snapshot.assignments:
        recovery, measured = layout[assignment.slice.operator].recovery, snapshot.measured.get(assignment.slice)
        if recovery.objective_s is None or measured is None or is_planned(assignment.slice, snapshot):
            continue
        yield Watched(
            history=measured.history,
            usage=measured.usage,
            objective_s=recovery.objective_s,
            guarantee=recovery.guarantee,
            strongest=at_most(strongest(layout[assignment.slice.operator], assignment.passive), snapshot),
            ship_every=recovery.ship_every,
        )
