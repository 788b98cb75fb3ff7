"""The manager's decisions: a snapshot in, instructions out.

Nothing is remembered between two ticks: whatever was decided and not carried out is decided again. Instructions are
therefore safe to repeat, and a manager that was killed goes on from what it finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from understudy.control.cluster.detector import Detector, is_stuck
from understudy.control.cluster.drain import moves
from understudy.control.cluster.instructions import (
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
from understudy.control.cluster.placement import candidates, place
from understudy.control.cluster.reactions import covered, react
from understudy.control.cluster.secondaries import (
    agrees,
    burdens,
    deployments,
    distrust,
    healthy_secondary,
    hosts_of,
    initial_scheme,
    look_after,
    promote,
)
from understudy.control.cluster.throttling import throttle
from understudy.model.config import DetectorSection
from understudy.model.layout import Kind, Layout
from understudy.model.messages import Failure, ReplicaStatus, State
from understudy.model.names import SliceId
from understudy.model.snapshot import Assignment, NodeView, Phase, Snapshot


def decide(snapshot: Snapshot, detector: Detector) -> tuple[Instruction, ...]:
    """One tick. A node that is declared dead in this tick loses its slices in the next one."""
    if snapshot.phase.over:
        return ()
    lost = tuple(_lose_nodes(snapshot, detector))
    if lost:
        return lost
    if snapshot.phase is not Phase.RUNNING or snapshot.layout is None:
        return tuple(_gather(snapshot))
    return tuple(_run(snapshot, snapshot.layout, detector))


def _lose_nodes(snapshot: Snapshot, detector: Detector) -> Iterator[LoseNode]:
    nodes = {node.name: node for node in snapshot.nodes}
    for node in snapshot.nodes:
        if detector.dead(node, snapshot.nodes, covered=covered(node, snapshot.assignments, nodes)):
            yield LoseNode(node.name, snapshot.replace, _obituary(node))


def _obituary(node: NodeView) -> str:
    if node.gone is not None:
        return f"{node.name} ended: {node.gone}"
    if node.connected and node.jvm_silent_s > node.silent_s:
        return f"the JVM of {node.name} has not moved for {node.jvm_silent_s:.2f} s"
    return f"{node.name} has been {'silent' if node.connected else 'disconnected'} for {node.silent_s:.2f} s"


def _gather(snapshot: Snapshot) -> Iterator[Instruction]:
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


def _run(snapshot: Snapshot, layout: Layout, detector: Detector) -> Iterator[Instruction]:
    finished = _finished(snapshot, layout)
    if finished is not None:
        yield finished
        return
    yield from _set_goal(snapshot, layout)
    nodes = {node.name: node for node in snapshot.nodes}
    assigned = {assignment.slice: assignment for assignment in snapshot.assignments}
    failed = _failed(nodes, assigned, detector.limits)
    fatal = _fatal(failed, assigned, snapshot.config.recovery.max_failures)
    if fatal is not None:
        yield fatal
        return
    if not any(node.connected and node.ready for node in snapshot.nodes):
        # Nobody could carry anything out; failures are still reported when somebody can.
        return
    rewinds = _rewinds(failed, assigned)
    assigned |= {s: _rewound(assigned[s], epochs) for s, epochs in rewinds.items() if s in assigned}
    moved: dict[SliceId, Assign] = {}
    for slice_id, current in assigned.items():
        moved |= _take_over(slice_id, current, nodes, failed.get(slice_id))
    homeless = [s for s in layout.slices if s not in moved and (s not in assigned or assigned[s].node not in nodes)]
    again = [s for s in layout.slices if s not in moved and (s in failed or (s in rewinds and s not in homeless))]
    yield from moved.values()
    for slice_id in again:
        host = _host(assigned[slice_id], snapshot, layout, assigned)
        yield _try_again(replace(assigned[slice_id], node=host), failed.get(slice_id))
    yield from _assign(homeless, snapshot, layout, assigned)
    settled = [assigned[s] for s in layout.slices if s not in again and s not in homeless and s not in moved]
    yield from _settle(settled, snapshot, layout, assigned, detector)


def _take_over(
    slice_id: SliceId, current: Assignment, nodes: dict[str, NodeView], failure: Failure | None
) -> dict[SliceId, Assign]:
    """A secondary that is well takes over from a primary that is gone or has failed.

    Not where a bag must be made again: the state of the secondary may be past it already.
    """
    gone = current.node not in nodes
    if current.rewind is not None or not (gone or failure) or healthy_secondary(current, nodes) is None:
        return {}
    reason = f"{current.node} is lost" if gone or failure is None else failure.what
    found = promote(current, reason)
    if failure is not None:
        found = replace(found, assignment=_after(found.assignment, failure))
    return {slice_id: found}


def _settle(
    settled: list[Assignment],
    snapshot: Snapshot,
    layout: Layout,
    assigned: dict[SliceId, Assignment],
    detector: Detector,
) -> Iterator[Instruction]:
    """What is left to do for slices that have a primary: one change each in a tick."""
    nodes = {node.name: node for node in snapshot.nodes}
    replicas = [replica for node in snapshot.nodes for replica in node.replicas]
    changes: dict[SliceId, Assign] = {}
    for assignment in settled:
        found = distrust(assignment, layout[assignment.slice.operator], replicas)
        if found is not None:
            changes[assignment.slice] = found
    recovery = snapshot.config.recovery
    reactions = react(settled, nodes, layout, detector, snapshot.reaction, snapshot.age_s, recovery)
    others = [*_forgive(settled, nodes), *look_after(settled, nodes, layout, recovery), *moves(snapshot, layout)]
    throttled = throttle(settled, nodes, layout, snapshot.age_s, snapshot.config.overload) if snapshot.throttles else ()
    for change in [*reactions, *others, *throttled]:
        changes.setdefault(change.assignment.slice, change)
    yield from changes.values()
    yield from _deploy([a for a in settled if a.slice not in changes], nodes, assigned, layout)
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
    sources = [str(slice_id) for slice_id in layout.of_kind(Kind.SOURCE)]
    replicas = [replica for node in snapshot.nodes for replica in node.replicas]
    if snapshot.left_s is not None and snapshot.left_s <= 0:
        # Whoever has just been started knows too little: sources first have to say how far they are.
        if {r.slice for r in replicas if r.epoch >= 0 or r.ended_at is not None} >= set(sources):
            goal = max(*(r.epoch + 1 for r in replicas), *snapshot.delivered.values())
            yield SetGoal(goal, f"the time is up after {goal} epochs")
        return
    ends = {r.slice: r.ended_at for r in replicas if r.ended_at is not None}
    if sources and all(name in ends for name in sources):
        goal = max(ends[name] for name in sources)
        yield SetGoal(goal, f"all sources have ended, the last after {goal} epochs")


def _assign(
    slices: list[SliceId], snapshot: Snapshot, layout: Layout, assigned: dict[SliceId, Assignment]
) -> Iterator[Instruction]:
    able = candidates(snapshot.nodes)
    if not able:
        return
    hosts = {s: a.node for s, a in assigned.items() if s not in slices}
    burden = burdens(assigned.values())
    for slice_id, node in place(slices, [node.name for node in able], hosts, layout, burden).items():
        before = assigned.get(slice_id)
        if before is None:
            scheme = initial_scheme(layout[slice_id.operator], snapshot.scheme)
            yield Assign(Assignment(slice_id, node, 1, scheme=scheme, issued=1), f"{slice_id} goes to {node}")
            continue
        # What had to be rewound still has to be; a secondary that could not take over starts anew as well.
        anew = before.anew(node)
        reason = f"{slice_id} goes to {node}" + (f" because {before.node} is lost" if before.node else "")
        yield Assign(replace(anew, failures=0), reason)


def _deploy(
    assignments: list[Assignment], nodes: dict[str, NodeView], assigned: dict[SliceId, Assignment], layout: Layout
) -> Iterator[DeployReplica]:
    for assignment in assignments:
        if any(assigned[one].rewind is not None for one in assignment.waits_for if one in assigned):
            continue
        for name, deploy in deployments(assignment, layout):
            node = nodes.get(name)
            if node is None or not node.connected or not node.ready:
                continue
            there = node.hosting(assignment.slice, deploy.generation)
            if there is None:
                yield DeployReplica(name, deploy, f"{name} does not host {deploy.slice} yet")
            elif not agrees(there, deploy):
                yield DeployReplica(name, deploy, f"{deploy.slice} on {name} shall be {deploy.capabilities}")


def _forgive(assignments: list[Assignment], nodes: dict[str, NodeView]) -> Iterator[Assign]:
    """When all damaged bags were made again, no rewind is needed; failures before a success no longer count."""
    for assignment in assignments:
        for replica in nodes[assignment.node].replicas:
            if not _matches(replica, assignment):
                continue
            made = replica.epoch >= assignment.rewind_to
            relieved = replace(assignment, rewind=None, rewind_to=-1) if made else assignment
            if replica.steps.done:
                relieved = replace(relieved, failures=0, waits_for=(), spoilt=None, spoilings=0)
            if relieved != assignment:
                yield Assign(relieved, f"{assignment.slice} gets on again")


def _stop_strangers(nodes: dict[str, NodeView], assigned: dict[SliceId, Assignment]) -> Iterator[StopReplica]:
    for node in nodes.values():
        for replica in node.replicas:
            current = assigned.get(SliceId.parse(replica.slice))
            if current is None or hosts_of(current).get(node.name) != replica.generation:
                yield StopReplica(node.name, replica.slice, replica.generation, "another replica took over")


def _failed(
    nodes: dict[str, NodeView], assigned: dict[SliceId, Assignment], limits: DetectorSection
) -> dict[SliceId, Failure]:
    """The slices whose present replica has failed, or is stuck."""
    return {
        current.slice: failure
        for node in nodes.values()
        for replica in node.replicas
        if (failure := _failure(replica, limits)) is not None
        and (current := assigned.get(SliceId.parse(replica.slice))) is not None
        and current.node == node.name
        and _matches(replica, current)
    }


def _failure(replica: ReplicaStatus, limits: DetectorSection) -> Failure | None:
    if replica.state is State.FAILED:
        return replica.failure
    if not is_stuck(replica, limits):
        return None
    return Failure(
        what=f"{replica.slice} has had input for {replica.stalled_s:.0f} s and has finished nothing",
        why="its query neither ends nor fails: a function of the operator may wait for something that never comes",
        fix="look at the operator's functions and at the node's log; then continue with --resume",
    )


def _fatal(failed: dict[SliceId, Failure], assigned: dict[SliceId, Assignment], most: int) -> FailRun | None:
    for slice_id, failure in failed.items():
        after = _after(assigned[slice_id], failure)
        if failure.final or max(after.failures, after.spoilings) > most:
            return FailRun(failure, f"{slice_id} cannot go on")
    return None


def _after(assignment: Assignment, failure: Failure) -> Assignment:
    """What is remembered of a failure. Damaged bags are none: nothing is wrong with who reads them.

    Only if the same bag is found damaged again and again, making it again is of no use.
    """
    if not failure.damaged:
        return replace(assignment, failures=assignment.failures + 1)
    spoilt = failure.damaged[0]
    spoilings = assignment.spoilings + 1 if spoilt == assignment.spoilt else 1
    awaited = tuple(dict.fromkeys(SliceId.parse(name) for name, _ in failure.damaged))
    return replace(assignment, waits_for=awaited, spoilt=spoilt, spoilings=spoilings)


def _rewinds(failed: dict[SliceId, Failure], assigned: dict[SliceId, Assignment]) -> dict[SliceId, list[int]]:
    """For every slice with damaged bags, their epochs; several readers may have found different ones.

    Not those that the slice is making again already.
    """
    rewinds: dict[SliceId, list[int]] = {}
    for name, epoch in (bag for failure in failed.values() for bag in failure.damaged):
        slice_id = SliceId.parse(name)
        current = assigned.get(slice_id)
        if current is None or current.rewind is None or not current.rewind <= epoch <= current.rewind_to:
            rewinds.setdefault(slice_id, []).append(epoch)
    return rewinds


def _rewound(assignment: Assignment, epochs: list[int]) -> Assignment:
    pending = [] if assignment.rewind is None else [assignment.rewind, assignment.rewind_to]
    return replace(assignment, rewind=min(epochs + pending), rewind_to=max(epochs + pending))


def _host(current: Assignment, snapshot: Snapshot, layout: Layout, assigned: dict[SliceId, Assignment]) -> str:
    """First where it was, because its data is near; then elsewhere, because the node may be the reason."""
    others = [node.name for node in candidates(snapshot.nodes) if node.name != current.node]
    if current.failures == 0 or not others:
        return current.node
    hosts = {slice_id: a.node for slice_id, a in assigned.items() if slice_id != current.slice}
    return place([current.slice], others, hosts, layout)[current.slice]


def _try_again(assignment: Assignment, failure: Failure | None) -> Assign:
    """A failed replica is deployed again; a damaged bag is made again by the slice it came from."""
    again = assignment.anew(assignment.node)
    if failure is None:
        return Assign(
            again, f"{again.slice} makes its damaged bags from epoch {again.rewind} to {again.rewind_to} again"
        )
    if failure.damaged:
        return Assign(_after(again, failure), f"{again.slice} waits for bags that are made again: {failure.what}")
    return Assign(_after(again, failure), f"{again.slice} failed and is tried again: {failure.what}")


def _matches(replica: ReplicaStatus, assignment: Assignment) -> bool:
    return replica.slice == str(assignment.slice) and replica.generation == assignment.generation
