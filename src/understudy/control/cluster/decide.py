"""The manager's decisions: a snapshot in, instructions out. Start reading here.

One call decides one tick: nodes that are given up, what follows from their loss, and everything else that is to change.
Policies suggest new assignments (`recovering`, `secondaries`, `reactions`, `requests`, `moving`, `drain`, `throttling`,
`planned`, `controlling`, `rebalancing`), the arbiter accepts at most one for every slice (`suggestions`), and the
deployments that follow from the assignments are part of the same decision (`deploying`). Nothing else tells a node to
host a replica.

What was decided and not carried out is decided again. Instructions are therefore safe to repeat, and a manager that was
killed goes on from what it finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from understudy.control.cluster.branch_view import View
from understudy.control.cluster.branching import branch
from understudy.control.cluster.controlling import control, learn, unlearn
from understudy.control.cluster.deploying import deploy_missing, stop_strangers
from understudy.control.cluster.drain import leave, releases
from understudy.control.cluster.forking import arm_forks, deploy_forks, lacks_slices, ship_early, stop_forks
from understudy.control.cluster.goals import finished, set_goal
from understudy.control.cluster.instructions import (
    Assign,
    CheckTopology,
    Decision,
    FailRun,
    Instruction,
    LoseDomain,
    SetBranch,
)
from understudy.control.cluster.losing import lose_nodes
from understudy.control.cluster.moving import advance, asked, not_begun
from understudy.control.cluster.planned import adopt, follow, remembered
from understudy.control.cluster.reactions import react
from understudy.control.cluster.rebalancing import accepted, ended, rebalance
from understudy.control.cluster.recovering import failures, fatal, forgive, recover
from understudy.control.cluster.requests import requested, still_open
from understudy.control.cluster.scaling import scale
from understudy.control.cluster.secondaries import distrust, suggest_secondaries
from understudy.control.cluster.sites import Placing
from understudy.control.cluster.snapshot import Memory, Snapshot
from understudy.control.cluster.suggestions import Ruling, Suggestion, arbitrate
from understudy.control.cluster.throttling import throttle
from understudy.model.layout import Layout
from understudy.model.messages import Failure
from understudy.model.names import SliceId
from understudy.model.snapshot import Assignment, Phase


def decide(snapshot: Snapshot) -> Decision:
    """What to do now. The loss of a node and what follows from it are one decision."""
    if snapshot.ended:
        snapshot = replace(snapshot, memory=learn(snapshot), ended=())
    if snapshot.phase.over:
        return Decision(memory=snapshot.memory)
    lost = tuple(lose_nodes(snapshot))
    if lost:
        together = {name: one.domain for one in lost if isinstance(one, LoseDomain) for name in one.nodes}
        rest = decide(snapshot.without({name for one in lost for name in one.nodes}, together))
        return replace(rest, instructions=(*lost, *rest.instructions))
    if snapshot.phase is not Phase.RUNNING or snapshot.layout is None:
        return Decision(tuple(_gather(snapshot)), snapshot.memory)
    return _run(snapshot, snapshot.layout)


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
    adopted = tuple(adopt(snapshot, layout))
    for one in adopted:
        snapshot = snapshot.remembering(remembered(snapshot.memory, one))
    if not any(node.connected and node.ready for node in snapshot.nodes):
        # Nobody could carry anything out; replicas that failed report it until somebody can.
        return Decision((*goals, *adopted), snapshot.memory)
    urgent = list(recover(snapshot, layout, failed))
    moved, assigned, nodes = {one.slice for one in urgent}, snapshot.assigned, snapshot.by_name
    # Slices of a lost domain that wait for their turn have no node.
    settled = [assigned[s] for s in layout.slices if s not in moved and assigned[s].node in nodes]
    chosen, memory = control(settled, snapshot, layout)
    evened, memory = rebalance(snapshot.remembering(memory), layout)
    ruling = arbitrate([*urgent, *_policies(settled, snapshot, layout), *chosen, *evened])
    memory = _remember(unlearn(memory, snapshot.memory.controller, ruling), ruling, assigned)
    memory = accepted(memory, ruling, snapshot.age_s)
    scaled, memory = scale(snapshot.remembering(memory), layout)
    view = View(snapshot.remembering(memory), layout, _after(ruling, snapshot))
    branched, memory = branch(view)
    return Decision(
        (
            *goals,
            *adopted,
            *_carry_out(ruling, snapshot, layout),
            *branched,
            *_fork(view, branched, memory),
            *ended(snapshot.memory, memory),
            *scaled,
        ),
        memory,
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
    placing, others_first = Placing.of(snapshot, layout), lacks_slices(snapshot)
    yield from suggest_secondaries(settled, nodes, layout, recovery, placing, others_first=others_first)
    yield from asked(settled, layout, snapshot.memory.moves, snapshot.age_s)
    yield from advance(settled, snapshot, layout)
    yield from leave(snapshot, layout)
    if snapshot.throttles:
        yield from throttle(settled, nodes, layout, snapshot.age_s, snapshot.config.overload)
    yield from follow(settled, snapshot, layout)


def _carry_out(ruling: Ruling, snapshot: Snapshot, layout: Layout) -> Iterator[Instruction]:
    """First all assignments, then the deployments that follow from them, then the stops."""
    for one in ruling.accepted.values():
        yield Assign(one.assignment, one.reason, one.origin, one.choice)
    after = _after(ruling, snapshot)
    yield from deploy_missing(after, snapshot.by_name, layout, snapshot.delivered)
    yield from stop_strangers(snapshot.nodes, snapshot.assigned)
    yield from releases(snapshot, after.values())


def _after(ruling: Ruling, snapshot: Snapshot) -> Mapping[SliceId, Assignment]:
    """The assignments with those that were accepted: these first and in their order, which is that of recovery."""
    changed = {s: one.assignment for s, one in ruling.accepted.items()}
    return {**changed, **{s: one for s, one in snapshot.assigned.items() if s not in changed}}


def _fork(view: View, branched: Sequence[SetBranch], memory: Memory) -> Iterator[Instruction]:
    """The forks that follow from the branch, and those that wait for the next one."""
    snapshot = view.snapshot
    current = branched[-1].branch if branched else snapshot.branch
    yield from ship_early(view, memory.absent)
    yield from deploy_forks(current, snapshot.by_name, view.layout, snapshot.delivered)
    yield from stop_forks(view, current)
    yield from arm_forks(view, current)


def _remember(memory: Memory, ruling: Ruling, assigned: Mapping[SliceId, Assignment]) -> Memory:
    requests, moves = still_open(memory.requests, ruling), not_begun(memory.moves, assigned, ruling)
    if requests == memory.requests and moves == memory.moves:
        return memory
    return replace(memory, requests=MappingProxyType(requests), moves=MappingProxyType(moves))
