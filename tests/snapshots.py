"""Snapshots of a word count on a few nodes, to be changed a little by each test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.builders import word_count_layout
from understudy.control.cluster.decide import decide
from understudy.control.cluster.detector import Detector
from understudy.control.cluster.instructions import Assign, Instruction
from understudy.control.cluster.snapshot import Snapshot
from understudy.model.messages import ReplicaStatus, State, Steps
from understudy.model.names import SliceId
from understudy.model.snapshot import Assignment, NodeView, Phase

LAYOUT = word_count_layout()
DETECTOR = Detector()
LINES, WORDS, COUNTS, OTHER = (SliceId.parse(n) for n in ("lines[0]", "words[0]", "counts[0]", "counts[1]"))


def replica(slice_id: SliceId, generation: int = 1, **changes: Any) -> ReplicaStatus:
    usual: dict[str, Any] = {"state": State.RUNNING, "epoch": 5, "steps": Steps(done=True)}
    if not changes.get("primary", True):
        usual["ship_every"] = 0
    return ReplicaStatus(slice=slice_id, generation=generation, **(usual | changes))


def node(name: str, *replicas: ReplicaStatus, **changes: Any) -> NodeView:
    usual: dict[str, Any] = {"connected": True, "ready": True, "silent_s": 0.0}
    return NodeView(name=name, replicas=replicas, **(usual | changes))


def snapshot(*nodes: NodeView, **changes: Any) -> Snapshot:
    usual: dict[str, Any] = {
        "phase": Phase.RUNNING,
        "layout": LAYOUT,
        "assignments": (),
        "wanted_nodes": 2,
        "replace": False,
        "delivered": {"out": 3},
        "goal": 100,
        "waited_s": 1.0,
        "detector": DETECTOR,
    }
    return Snapshot(nodes=nodes, **(usual | changes))


def healthy(**changes: Any) -> Snapshot:
    """All slices on two nodes, sources at epoch 9, the others at 5."""
    hosts = {s: ("node-1", "node-2")[n % 2] for n, s in enumerate(LAYOUT.slices)}
    nodes = [
        node(name, *(replica(s, epoch=9 if s.operator == "lines" else 5) for s in hosts if hosts[s] == name))
        for name in ("node-1", "node-2")
    ]
    assignments = tuple(Assignment(s, name, 1) for s, name in hosts.items())
    return snapshot(*nodes, **({"assignments": assignments} | changes))


def failing(base: Snapshot, broken: dict[SliceId, Any]) -> Snapshot:
    """The same with some replicas failed."""
    nodes = tuple(
        replace(
            view,
            replicas=tuple(
                r.model_copy(update={"state": State.FAILED, "failure": broken[r.slice]}) if r.slice in broken else r
                for r in view.replicas
            ),
        )
        for view in base.nodes
    )
    return replace(base, nodes=nodes)


def decided(given: Snapshot) -> tuple[Instruction, ...]:
    return decide(given).instructions


def assigns(instructions: tuple[Instruction, ...]) -> dict[SliceId, Assignment]:
    found = [i.assignment for i in instructions if isinstance(i, Assign)]
    assert len({a.slice for a in found}) == len(found)
    return {a.slice: a for a in found}
