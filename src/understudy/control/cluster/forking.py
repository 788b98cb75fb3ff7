"""What nodes are told about forks: to start them, to arm them beforehand, to stop them.

A branch that opens must not wait for queries to start. So every operator that would have to work without the slices of
a node or of a domain has an *armed* fork beside its primary, and one beside a secondary that works, which would be the
primary then: a fork of the next branch that has started its query, and waits. It follows nothing and costs no CPU.
Just before a branch opens, the primaries that will be forked ship what they have, so that there is nothing to replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from understudy.control.cluster.branch_view import View
from understudy.control.cluster.deploying import hosts_of
from understudy.control.cluster.instructions import DeployReplica, ShipCheckpoint, StopReplica
from understudy.control.cluster.secondaries import healthy_secondary
from understudy.control.cluster.snapshot import Snapshot
from understudy.model.branch import Branch, Fork
from understudy.model.capabilities import ROWS
from understudy.model.layout import Kind, Layout
from understudy.model.messages import Deploy, ReplicaStatus, State
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.snapshot import Assignment, NodeView

ARMED = ROWS[Scheme.PASSIVE_STANDBY_COLD]
"""Its query waits behind its gate."""
SOON_S = 1.0
"""So long before a branch opens, at most, primaries ship for their forks."""
FIRST_S = 30.0
"""So long, at most, slices that are away, and forks, have the CPU before new secondaries."""


# -- the forks of a branch


def deploy_forks(
    current: Branch | None, nodes: Mapping[str, NodeView], layout: Layout, delivered: Mapping[str, int]
) -> Iterator[DeployReplica]:
    """Forks that are not there, that only wait, or that were last told of other missing slices."""
    for fork in current.forks if current else ():
        node = nodes.get(fork.node)
        if current is None or node is None or not node.connected or not node.ready:
            continue
        there = node.forking(current.number, fork.slice, fork.generation)
        if there is not None and there.missing == current.missing and there.asked.processes:
            continue
        sink = layout[fork.slice.operator].kind is Kind.SINK
        deploy = Deploy(
            slice=fork.slice,
            generation=fork.generation,
            primary=False,
            ship_every=0,
            resume_at=delivered.get(fork.slice.operator, 0) if sink else 0,
            branch=current.number,
            missing=current.missing,
        )
        yield DeployReplica(fork.node, deploy, f"{fork.slice} is forked for tentative output")


def stop_forks(view: View, current: Branch | None) -> Iterator[StopReplica]:
    """Forks of a branch that was dropped, those that were replaced, and armed ones whose primary went elsewhere."""
    wanted = set(current.forks) if current else set()
    open_number = current.number if current else view.snapshot.last_branch + 1
    for node in view.nodes.values():
        for replica in node.forks:
            fork = Fork(replica.slice, node.name, replica.generation)
            if replica.branch == open_number and (fork in wanted or _may_wait(view, node, replica)):
                continue
            # The bags of a branch that was never opened, or goes on, are left alone.
            drops = replica.branch < open_number
            reason = f"the fork of {replica.slice} is not needed any more"
            yield StopReplica(node.name, replica.slice, replica.generation, reason, replica.branch, drops)


def _may_wait(view: View, node: NodeView, replica: ReplicaStatus) -> bool:
    """Whether a fork only waits, and is where it may be needed: losses change who would be forked from now on, but not
    who is about to be."""
    current = view.assigned.get(replica.slice)
    here = current is not None and node.name in hosts_of(current) and not node.draining
    return here and not replica.asked.processes


# -- before a branch opens


def arm_forks(view: View, current: Branch | None) -> Iterator[DeployReplica]:
    """Armed forks that are not there yet: one at a time on every node, and only where there is nothing else to do."""
    number = view.snapshot.last_branch + 1
    if current is not None or view.snapshot.tentative_s is None or not view.has_begun():
        return
    busy = {node.name for node in view.nodes.values() if not _is_calm(node, number)}
    for fork in _armed(view):
        if fork.node not in busy and view.nodes[fork.node].forking(number, fork.slice, fork.generation) is None:
            busy.add(fork.node)
            deploy = Deploy(
                slice=fork.slice,
                generation=fork.generation,
                primary=False,
                capabilities=ARMED,
                ship_every=0,
                branch=number,
            )
            yield DeployReplica(fork.node, deploy, f"a fork of {fork.slice} waits for the next branch")


def ship_early(view: View, absent: Mapping[SliceId, float]) -> Iterator[ShipCheckpoint]:
    """Primaries that are about to be forked and have not shipped what they did last."""
    deadline_s, missing = view.snapshot.tentative_s, tuple(sorted(absent))
    if deadline_s is None or view.snapshot.branch is not None or not missing:
        return
    soon = min(absent.values()) + deadline_s - view.snapshot.age_s <= SOON_S
    if not soon or not view.has_begun() or not view.is_worthwhile(missing):
        return
    for slice_id in sorted(view.forkable(missing) - set(missing)):
        primary = view.primary(slice_id)
        if primary is not None and primary.ship_every > 0 and primary.shipped_to < primary.epoch:
            node, generation = view.assigned[slice_id].node, primary.generation
            yield ShipCheckpoint(node, slice_id, generation, f"{slice_id} ships what it has: it will be forked")


def lacks_slices(snapshot: Snapshot) -> bool:
    """Whether a run with tentative output has lost slices lately: they and the forks have the CPU first."""
    return any(snapshot.age_s - since < FIRST_S for since in snapshot.memory.absent.values())


def _armed(view: View) -> list[Fork]:
    """Who would be forked if a node, or a domain, were lost, and where its primary would be then."""
    if view.snapshot.tentative_s is None:
        return []
    wanted = {fork for group in _groups(view.nodes.values()) for fork in _forked_without(view, group)}
    return sorted(wanted, key=lambda fork: (fork.slice, fork.node))


def _groups(nodes: Iterable[NodeView]) -> Iterator[frozenset[str]]:
    """Nodes that may be lost together."""
    domains: dict[str, set[str]] = {}
    for node in nodes:
        yield frozenset({node.name})
        if node.domain:
            domains.setdefault(node.domain, set()).add(node.name)
    yield from (frozenset(names) for names in domains.values() if len(names) > 1)


def _forked_without(view: View, group: frozenset[str]) -> Iterator[Fork]:
    """The forks of a branch that does without these nodes."""
    homes = {one.slice: _home_without(view, one, group) for one in view.assigned.values()}
    gone = [one for one, home in homes.items() if home is None and view.layout[one.operator].kind is not Kind.SINK]
    missing = tuple(sorted(gone))
    if not missing or not view.is_worthwhile(missing):
        return
    stays = {node.name for node in view.hosts if not node.draining}
    for one in view.downstream(missing) - set(missing):
        home = homes[one]
        if home in stays and view.layout[one.operator].kind is Kind.OPERATOR:
            yield Fork(one, home)


def _home_without(view: View, assignment: Assignment, group: frozenset[str]) -> str | None:
    """Where a slice would work without these nodes, in a moment; None where it would be missing."""
    if assignment.node not in group:
        return assignment.node
    secondary = healthy_secondary(assignment, view.nodes)
    placed = assignment.secondary.node if assignment.secondary else None
    at_work = secondary is not None and secondary.asked.processes and placed not in group
    return placed if at_work else None


def _is_calm(node: NodeView, number: int) -> bool:
    """Whether everybody on a node has become what it was told to be, and keeps up, and no older branch lingers."""
    if not node.ready or node.full_s > 0 or any(fork.branch != number for fork in node.forks):
        return False
    return all(_is_settled(one) for one in (*node.replicas, *node.forks))


def _is_settled(replica: ReplicaStatus) -> bool:
    return replica.state is State.FAILED or replica.capabilities == replica.asked
