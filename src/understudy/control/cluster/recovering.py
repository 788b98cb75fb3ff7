"""Slices without a working primary: who takes over, who is deployed again, and where.

Three cases. A secondary that is well takes over. A primary that failed is deployed again, first where it was, then
elsewhere. A slice whose node is gone is placed anew. Damaged bags are made again by the slice that wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from understudy.control.cluster.detector import is_stuck
from understudy.control.cluster.instructions import FailRun
from understudy.control.cluster.placement import candidates, place
from understudy.control.cluster.planned import first_scheme
from understudy.control.cluster.queueing import admitted
from understudy.control.cluster.secondaries import promote, successor
from understudy.control.cluster.sites import Placing, Sites
from understudy.control.cluster.snapshot import Snapshot
from understudy.control.cluster.suggestions import Origin, Suggestion
from understudy.model.config import DetectorSection
from understudy.model.layout import Layout
from understudy.model.messages import Failure, ReplicaStatus, State
from understudy.model.names import SliceId
from understudy.model.snapshot import Assignment, NodeView


def failures(snapshot: Snapshot) -> dict[SliceId, Failure]:
    """The slices whose present primary has failed, or is stuck."""
    assigned = snapshot.assigned
    return {
        current.slice: failure
        for node in snapshot.nodes
        for replica in node.replicas
        if (failure := _failure(replica, snapshot.detector.limits)) is not None
        and (current := assigned.get(replica.slice)) is not None
        and current.node == node.name
        and current.generation == replica.generation
    }


def fatal(failed: Mapping[SliceId, Failure], assigned: Mapping[SliceId, Assignment], most: int) -> FailRun | None:
    """The failure that ends the run, if there is one: trying again cannot help, or has not helped."""
    for slice_id, failure in failed.items():
        after = _after(assigned[slice_id], failure)
        if failure.final or max(after.failures, after.spoilings) > most:
            return FailRun(failure, f"{slice_id} cannot go on")
    return None


def recover(snapshot: Snapshot, layout: Layout, failed: Mapping[SliceId, Failure]) -> Iterator[Suggestion]:
    """One suggestion for every slice that has no working primary, or has to make damaged bags again."""
    nodes, rewinds = snapshot.by_name, _rewinds(failed, snapshot.assigned)
    assigned = dict(snapshot.assigned)
    assigned |= {s: _rewound(assigned[s], epochs) for s, epochs in rewinds.items() if s in assigned}
    taken = {s: found for s, a in assigned.items() if (found := _take_over(a, nodes, failed.get(s))) is not None}
    homeless = [s for s in layout.slices if s not in taken and (s not in assigned or assigned[s].node not in nodes)]
    again = [s for s in layout.slices if s not in taken and (s in failed or (s in rewinds and s not in homeless))]
    yield from taken.values()
    for slice_id in again:
        host = _host(assigned[slice_id], snapshot, layout, assigned)
        yield _try_again(replace(assigned[slice_id], node=host), failed.get(slice_id))
    if homeless:
        yield from _place(admitted(homeless, snapshot, layout), snapshot, layout, assigned, taken)


def forgive(assignments: Iterable[Assignment], nodes: Mapping[str, NodeView]) -> Iterator[Suggestion]:
    """When all damaged bags were made again, no rewind is needed; failures before a success no longer count."""
    for assignment in assignments:
        replica = nodes[assignment.node].hosting(assignment.slice, assignment.generation)
        if replica is None:
            continue
        relieved = assignment
        if assignment.rewind is not None and replica.epoch >= assignment.rewind_to:
            relieved = replace(relieved, rewind=None, rewind_to=-1)
        if replica.steps.done and _is_burdened(assignment):
            relieved = replace(relieved, failures=0, waits_for=(), spoilt=None, spoilings=0)
        if relieved is not assignment:
            yield Suggestion(Origin.FORGIVENESS, relieved, f"{assignment.slice} gets on again")


def _is_burdened(assignment: Assignment) -> bool:
    """Whether anything is held against a slice."""
    held = assignment.failures or assignment.waits_for or assignment.spoilings
    return bool(held) or assignment.spoilt is not None


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


def _take_over(current: Assignment, nodes: Mapping[str, NodeView], failure: Failure | None) -> Suggestion | None:
    """A secondary that is well takes over from a primary that is gone or has failed.

    Not where a bag must be made again: the state of the secondary may be past it already.
    """
    gone = current.node not in nodes
    if current.rewind is not None or not (gone or failure):
        return None
    able = successor(current, nodes)
    if able is None:
        return None
    reason = f"{current.node} is lost" if gone or failure is None else failure.what
    found = promote(current, reason, to=able)
    return found if failure is None else replace(found, assignment=_after(found.assignment, failure))


def _place(
    slices: list[SliceId],
    snapshot: Snapshot,
    layout: Layout,
    assigned: Mapping[SliceId, Assignment],
    taken: Mapping[SliceId, Suggestion],
) -> Iterator[Suggestion]:
    """Slices that were never placed, and those whose node is gone. `taken` are taken over in the same decision."""
    fresh = [s for s in slices if s not in assigned]
    lost = [s for s in slices if s in assigned]
    able, all_able = candidates(snapshot.nodes), candidates(snapshot.nodes, standby=True)
    if not able:
        return
    placing = Placing.of(snapshot, layout)
    hosts = {s: a.node for s, a in assigned.items() if s not in slices}
    weights = placing.weights
    burden = weights.burdens(assigned.values())
    goals = _spread(lost, [node.name for node in all_able], assigned, taken, placing) if placing.spreads else {}
    left = [s for s in lost if s not in goals]
    goals |= place(left, [node.name for node in all_able], hosts | goals, layout, burden, weights)
    goals |= place(fresh, [node.name for node in able], hosts | goals, layout, burden, weights)
    for slice_id in slices:
        before, node = assigned.get(slice_id), goals[slice_id]
        if before is None:
            scheme = first_scheme(layout[slice_id.operator], snapshot)
            first = Assignment(slice_id, node, 1, scheme=scheme, issued=1)
            yield Suggestion(Origin.RECOVERY, first, f"{slice_id} goes to {node}")
            continue
        # A rewind stays, and a secondary that could not take over starts anew as well.
        reason = f"{slice_id} goes to {node}" + (f" because {before.node} is lost" if before.node else "")
        yield Suggestion(Origin.RECOVERY, replace(before.anew(node), failures=0), reason)


def _spread(
    lost: list[SliceId],
    able: list[str],
    assigned: Mapping[SliceId, Assignment],
    taken: Mapping[SliceId, Suggestion],
    placing: Placing,
) -> dict[SliceId, str]:
    """Slices of a lost node that nobody stood by for, placed by the rule that placed the secondaries of the others."""
    from_home = [s for s in lost if assigned[s].node]
    after = {s: a for s, a in assigned.items() if s not in lost} | {s: one.assignment for s, one in taken.items()}
    homes = {assigned[s].node for s in (*from_home, *taken)}
    sites = Sites({*able, *homes}, after.values(), placing)
    for slice_id, one in taken.items():
        sites.would_take(assigned[slice_id], assigned[slice_id].node, one.assignment.node)
    chosen: dict[SliceId, str] = {}
    for slice_id in sorted(from_home, key=lambda s: (-placing.weights.primary(s), s)):
        before = assigned[slice_id]
        chosen[slice_id] = sites.choose(before.node, able)
        sites.take(before, before.node, chosen[slice_id])
    return chosen


def _after(assignment: Assignment, failure: Failure) -> Assignment:
    """The assignment with a failure counted. Damaged bags are no failure of the slice that reads them.

    Only if the same bag is found damaged again and again, making it again is of no use.
    """
    if not failure.damaged:
        return replace(assignment, failures=assignment.failures + 1)
    spoilt = failure.damaged[0]
    spoilings = assignment.spoilings + 1 if spoilt == assignment.spoilt else 1
    awaited = tuple(dict.fromkeys(slice_id for slice_id, _ in failure.damaged))
    return replace(assignment, waits_for=awaited, spoilt=spoilt, spoilings=spoilings)


def _rewinds(failed: Mapping[SliceId, Failure], assigned: Mapping[SliceId, Assignment]) -> dict[SliceId, list[int]]:
    """For every slice with damaged bags, their epochs; several readers may have found different ones.

    Not those that the slice is making again already.
    """
    rewinds: dict[SliceId, list[int]] = {}
    for slice_id, epoch in (bag for failure in failed.values() for bag in failure.damaged):
        current = assigned.get(slice_id)
        if current is None or current.rewind is None or not current.rewind <= epoch <= current.rewind_to:
            rewinds.setdefault(slice_id, []).append(epoch)
    return rewinds


def _rewound(assignment: Assignment, epochs: list[int]) -> Assignment:
    pending = [] if assignment.rewind is None else [assignment.rewind, assignment.rewind_to]
    return replace(assignment, rewind=min(epochs + pending), rewind_to=max(epochs + pending))


def _host(current: Assignment, snapshot: Snapshot, layout: Layout, assigned: Mapping[SliceId, Assignment]) -> str:
    """First where it was, because its data is near; then elsewhere, because the node may be the reason."""
    others = [node.name for node in candidates(snapshot.nodes) if node.name != current.node]
    if current.failures == 0 or not others:
        return current.node
    hosts = {slice_id: a.node for slice_id, a in assigned.items() if slice_id != current.slice}
    return place([current.slice], others, hosts, layout)[current.slice]


def _try_again(assignment: Assignment, failure: Failure | None) -> Suggestion:
    """A failed replica is deployed again; a damaged bag is made again by the slice it came from."""
    again = assignment.anew(assignment.node)
    if failure is None:
        reason = f"{again.slice} makes its damaged bags from epoch {again.rewind} to {again.rewind_to} again"
        return Suggestion(Origin.RECOVERY, again, reason)
    if failure.damaged:
        reason = f"{again.slice} waits for bags that are made again: {failure.what}"
    else:
        reason = f"{again.slice} failed and is tried again: {failure.what}"
    return Suggestion(Origin.RECOVERY, _after(again, failure), reason)
