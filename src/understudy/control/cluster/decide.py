"""The manager's decisions: a snapshot in, instructions out. Start reading here.

One call decides one tick: nodes that are given up, what follows from their loss, and everything else that is to change.
Policies suggest new assignments (`recovering`, `secondaries`, `reactions`, `requests`, `drain`, `throttling`,
`controlling`), the arbiter accepts at most one for every slice (`suggestions`), and the deployments that follow from
the assignments are part of the same decision (`deploying`). Nothing else tells a node to host a replica.

What was decided and not carried out is decided again. Instructions are therefore safe to repeat, and a manager that was
killed goes on from what it finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from understudy.control.cluster.controlling import control, learn, unlearn
from understudy.control.cluster.deploying import deploy_missing, stop_strangers
from understudy.control.cluster.drain import moves
from understudy.control.cluster.goals import finished, set_goal
from understudy.control.cluster.instructions import (
    Assign,
    CheckTopology,
    Decision,
    FailRun,
    Instruction,
    LoseNode,
)
from understudy.control.cluster.reactions import covered, react
from understudy.control.cluster.recovering import failures, fatal, forgive, recover
from understudy.control.cluster.requests import requested, still_open
from understudy.control.cluster.secondaries import distrust, look_after
from understudy.control.cluster.snapshot import Memory, Snapshot
from understudy.control.cluster.suggestions import Ruling, Suggestion, arbitrate
from understudy.control.cluster.throttling import throttle
from understudy.model.layout import Layout
from understudy.model.messages import Failure
from understudy.model.names import SliceId
from understudy.model.snapshot import Assignment, NodeView, Phase


def decide(snapshot: Snapshot) -> Decision:
    """What to do now. The loss of a node and what follows from it are one decision."""
    snapshot = replace(snapshot, memory=learn(snapshot), ended=())
    if snapshot.phase.over:
        return Decision(memory=snapshot.memory)
    lost = tuple(_lose_nodes(snapshot))
    if lost:
        rest = decide(snapshot.without({one.node for one in lost}))
        return replace(rest, instructions=(*lost, *rest.instructions))
    if snapshot.phase is not Phase.RUNNING or snapshot.layout is None:
        return Decision(tuple(_gather(snapshot)), snapshot.memory)
    return _run(snapshot, snapshot.layout)


def _lose_nodes(snapshot: Snapshot) -> Iterator[LoseNode]:
    nodes = snapshot.by_name
    for node in snapshot.nodes:
        if snapshot.detector.dead(node, snapshot.nodes, covered=covered(node, snapshot.assignments, nodes)):
            yield LoseNode(node.name, snapshot.replace, _why_lost(node))


def _why_lost(node: NodeView) -> str:
    if node.gone is not None:
        return f"{node.name} ended: {node.gone}"
    if node.connected and node.jvm_silent_s > node.silent_s:
        return f"the JVM of {node.name} has not moved for {node.jvm_silent_s:.2f} s"
    return f"{node.name} has been {'silent' if node.connected else 'disconnected'} for {node.silent_s:.2f} s"


def _gather(snapshot: Snapshot) -> Iterator[Instruction]:
    """Before data flows: waits for nodes, then lets the first of them check the topology."""
    ready = [node for node in snapshot.nodes if node.connected and node.ready]
    patient = snapshot.waited_s < snapshot.config.cluster.start_s
    if snapshot.phase is Phase.GATHERING and ready and (len(ready) >= snapshot.wanted_nodes or not patient):
        yield CheckTopology(ready[0].name, f"{len(ready)} of {snapshot.wanted_nodes} nodes are ready")
    elif not ready and not patient:
        yield FailRun(
            Failure(
                what="no node has come up",
                why=f"none was ready within {snapshot.config.cluster.start_s:.0f} s",
                fix="see the node logs in the home directory, then continue with --resume",
            ),
            "no node",
        )


def _run(snapshot: Snapshot, layout: Layout) -> Decision:
    """While data flows."""
    end = finished(snapshot, layout)
    if end is not None:
        return Decision((end,), snapshot.memory)
    goals = tuple(set_goal(snapshot, layout))
    failed = failures(snapshot)
    broken = fatal(failed, snapshot.assigned, snapshot.config.recovery.max_failures)
    if broken is not None:
        return Decision((*goals, broken), snapshot.memory)
    if not any(node.connected and node.ready for node in snapshot.nodes):
        # Nobody could carry anything out; replicas that failed report it until somebody can.
        return Decision(goals, snapshot.memory)
    urgent = list(recover(snapshot, layout, failed))
    moved, assigned = {one.slice for one in urgent}, snapshot.assigned
    settled = [assigned[s] for s in layout.slices if s not in moved]
    chosen, memory = control(settled, snapshot, layout)
    ruling = arbitrate([*urgent, *_policies(settled, snapshot, layout), *chosen])
    return Decision(
        (*goals, *_carry_out(ruling, snapshot, layout)),
        _remember(unlearn(memory, snapshot.memory.controller, ruling), ruling),
        ruling.declined,
    )


def _policies(settled: list[Assignment], snapshot: Snapshot, layout: Layout) -> Iterator[Suggestion]:
    """What is suggested for slices that have a working primary, by all policies but the controller."""
    nodes, recovery = snapshot.by_name, snapshot.config.recovery
    replicas = [replica for node in snapshot.nodes for replica in node.replicas]
    yield from distrust(settled, layout, replicas)
    yield from react(settled, nodes, layout, snapshot.detector, snapshot.reaction, snapshot.age_s, recovery)
    yield from requested(settled, layout, snapshot.memory.requests)
    yield from forgive(settled, nodes)
    yield from look_after(settled, nodes, layout, recovery)
    yield from moves(snapshot, layout)
    if snapshot.throttles:
        yield from throttle(settled, nodes, layout, snapshot.age_s, snapshot.config.overload)


def _carry_out(ruling: Ruling, snapshot: Snapshot, layout: Layout) -> Iterator[Instruction]:
    """First all assignments, then the deployments that follow from them, then the stops."""
    for one in ruling.accepted.values():
        yield Assign(one.assignment, one.reason, one.origin, one.choice)
    assigned: Mapping[SliceId, Assignment] = snapshot.assigned
    after = {**assigned, **{s: one.assignment for s, one in ruling.accepted.items()}}
    nodes = snapshot.by_name
    yield from deploy_missing(after, nodes, layout, snapshot.delivered)
    yield from stop_strangers(snapshot.nodes, assigned)


def _remember(memory: Memory, ruling: Ruling) -> Memory:
    requests = still_open(memory.requests, ruling)
    return memory if requests == memory.requests else replace(memory, requests=MappingProxyType(requests))
