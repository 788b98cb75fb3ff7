"""The manager's decisions: a snapshot in, instructions out.

Nothing is remembered between two ticks: whatever was decided and not carried out is decided again. Instructions are
therefore safe to repeat, and a manager that was killed goes on from what it finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from understudy.control.detector import Detector
from understudy.control.instructions import (
    Assign,
    CheckTopology,
    DeployReplica,
    FailRun,
    FinishRun,
    Instruction,
    LoseNode,
    SetGoal,
    StopReplica,
)
from understudy.control.placement import place
from understudy.model.layout import Kind, Layout
from understudy.model.messages import Failure, ReplicaStatus, State
from understudy.model.names import SliceId
from understudy.model.snapshot import Assignment, NodeView, Phase, Snapshot

PATIENCE_S = 120.0
MAX_FAILURES = 3


def decide(snapshot: Snapshot, detector: Detector) -> tuple[Instruction, ...]:
    """One tick. A node that is declared dead in this tick loses its slices in the next one."""
    if snapshot.phase.over:
        return ()
    lost = tuple(_lose_nodes(snapshot, detector))
    if lost:
        return lost
    if snapshot.phase is not Phase.RUNNING or snapshot.layout is None:
        return tuple(_gather(snapshot))
    return tuple(_run(snapshot, snapshot.layout))


def _lose_nodes(snapshot: Snapshot, detector: Detector) -> Iterator[LoseNode]:
    for node in snapshot.nodes:
        if detector.dead(node):
            how = "silent" if node.connected else "disconnected"
            yield LoseNode(node.name, snapshot.replace, f"{node.name} has been {how} for {node.silent_s:.2f} s")


def _gather(snapshot: Snapshot) -> Iterator[Instruction]:
    ready = [node for node in snapshot.nodes if node.connected and node.ready]
    patient = snapshot.waited_s < PATIENCE_S
    if snapshot.phase is Phase.GATHERING and ready and (len(ready) >= snapshot.wanted_nodes or not patient):
        yield CheckTopology(ready[0].name, f"{len(ready)} of {snapshot.wanted_nodes} nodes are ready")
    elif not ready and not patient:
        yield FailRun(
            Failure(
                what="no node has come up",
                why=f"none was ready within {PATIENCE_S:.0f} s",
                fix="see the node logs in the home directory, then continue with --resume",
            ),
            "no node",
        )


def _run(snapshot: Snapshot, layout: Layout) -> Iterator[Instruction]:
    finished = _finished(snapshot, layout)
    if finished is not None:
        yield finished
        return
    yield from _set_goal(snapshot, layout)
    nodes = {node.name: node for node in snapshot.nodes}
    assigned = {assignment.slice: assignment for assignment in snapshot.assignments}
    failures = tuple(_handle_failures(nodes, assigned))
    yield from failures
    moved = {i.assignment.slice for i in failures if isinstance(i, Assign)}
    homeless = [s for s in layout.slices if (s not in assigned or assigned[s].node not in nodes) and s not in moved]
    yield from _assign(homeless, snapshot, layout, assigned)
    current = [assigned[s] for s in layout.slices if s in assigned and s not in moved and s not in homeless]
    yield from _deploy(current, nodes)
    yield from _end_rewinds(current, nodes)
    yield from _stop_strangers(nodes, assigned)


def _finished(snapshot: Snapshot, layout: Layout) -> FinishRun | None:
    goal = snapshot.goal
    sinks = layout.of_kind(Kind.SINK)
    if goal is None or any(snapshot.delivered.get(sink.operator, 0) < goal for sink in sinks):
        return None
    return FinishRun(f"every sink has delivered {goal} epochs")


def _set_goal(snapshot: Snapshot, layout: Layout) -> Iterator[SetGoal]:
    """The run is as long as its time allows, or as its longest source."""
    if snapshot.goal is not None:
        return
    if snapshot.left_s is not None and snapshot.left_s <= 0:
        newest = max((r.epoch for node in snapshot.nodes for r in node.replicas), default=-1)
        yield SetGoal(newest + 1, f"the time is up after {newest + 1} epochs")
        return
    ends = {r.slice: r.ended_at for node in snapshot.nodes for r in node.replicas if r.ended_at is not None}
    sources = [str(slice_id) for slice_id in layout.of_kind(Kind.SOURCE)]
    if sources and all(name in ends for name in sources):
        goal = max(ends[name] for name in sources)
        yield SetGoal(goal, f"all sources have ended, the last after {goal} epochs")


def _assign(
    slices: list[SliceId], snapshot: Snapshot, layout: Layout, assigned: dict[SliceId, Assignment]
) -> Iterator[Instruction]:
    able = [node for node in snapshot.nodes if node.connected and node.ready]
    if not able:
        return
    hosts = {s: a.node for s, a in assigned.items() if s not in slices}
    for slice_id, node in place(slices, [node.name for node in able], hosts, layout).items():
        before = assigned.get(slice_id)
        generation = before.generation + 1 if before else 1
        reason = f"{slice_id} goes to {node}" + (f" because {before.node} is lost" if before and before.node else "")
        # What had to be rewound still has to be.
        yield Assign(Assignment(slice_id, node, generation, before.rewind if before else None), reason)


def _deploy(assignments: list[Assignment], nodes: dict[str, NodeView]) -> Iterator[DeployReplica]:
    for assignment in assignments:
        node = nodes[assignment.node]
        there = any(_matches(replica, assignment) for replica in node.replicas)
        if node.connected and node.ready and not there:
            yield DeployReplica(assignment, f"{assignment.node} does not host {assignment.slice} yet")


def _end_rewinds(assignments: list[Assignment], nodes: dict[str, NodeView]) -> Iterator[Assign]:
    """A slice that has made its damaged bag again need not go back to it a second time."""
    for assignment in assignments:
        for replica in nodes[assignment.node].replicas:
            if assignment.rewind is not None and _matches(replica, assignment) and replica.epoch >= assignment.rewind:
                yield Assign(replace(assignment, rewind=None), f"{assignment.slice} has made its bag again")


def _stop_strangers(nodes: dict[str, NodeView], assigned: dict[SliceId, Assignment]) -> Iterator[StopReplica]:
    for node in nodes.values():
        for replica in node.replicas:
            current = assigned.get(SliceId.parse(replica.slice))
            if current is None or current.node != node.name or replica.generation < current.generation:
                yield StopReplica(node.name, replica.slice, replica.generation, "another replica took over")


def _handle_failures(nodes: dict[str, NodeView], assigned: dict[SliceId, Assignment]) -> Iterator[Instruction]:
    """A failed replica is deployed again; a damaged bag is made again by the slice it came from."""
    for node in nodes.values():
        for replica in node.replicas:
            current = assigned.get(SliceId.parse(replica.slice))
            if replica.state is not State.FAILED or current is None or not _matches(replica, current):
                continue
            if current.node == node.name and replica.failure is not None:
                yield from _handle_failure(current, replica.failure, assigned)


def _handle_failure(
    current: Assignment, failure: Failure, assigned: dict[SliceId, Assignment]
) -> Iterator[Instruction]:
    if failure.final or current.failures >= MAX_FAILURES:
        yield FailRun(failure, f"{current.slice} cannot go on")
        return
    again = replace(current, generation=current.generation + 1, failures=current.failures + 1)
    yield Assign(again, f"{current.slice} failed and is tried again: {failure.what}")
    if failure.damaged is not None:
        slice_name, epoch = failure.damaged
        upstream = assigned[SliceId.parse(slice_name)]
        back = epoch if upstream.rewind is None else min(epoch, upstream.rewind)
        rewound = replace(upstream, generation=upstream.generation + 1, rewind=back)
        yield Assign(rewound, f"{slice_name} makes its damaged bag of epoch {epoch} again")


def _matches(replica: ReplicaStatus, assignment: Assignment) -> bool:
    return replica.slice == str(assignment.slice) and replica.generation == assignment.generation
