"""The number of nodes follows the work: nodes are asked for, and nodes are emptied and let go.

`control/scaling` says how many there should be. Whoever started the run starts more (`runtime/launcher.py`). To have
fewer, the node with the least to do is drained as a person would drain it; it leaves when it is empty. One goes at a
time, and only while every slice works and is protected.
"""

from __future__ import annotations

from dataclasses import replace

from understudy.control.cluster.calm import is_calm, is_settled
from understudy.control.cluster.instructions import GrowCluster, RetireNode
from understudy.control.cluster.placement import candidates
from understudy.control.cluster.queueing import cores_of
from understudy.control.cluster.sites import Placing, Sites
from understudy.control.cluster.snapshot import Memory, Scaling, Snapshot
from understudy.control.scaling import named
from understudy.control.scaling.limits import bounded, due
from understudy.control.scaling.sample import Sample, Wish
from understudy.model.capabilities import OFF, ROWS
from understudy.model.layout import Layout
from understudy.model.snapshot import NodeView

SAMPLE_EVERY_S = 2.0
KEPT_COOL_DOWNS = 3
LEAST_KEPT_S = 300.0


def scale(snapshot: Snapshot, layout: Layout) -> tuple[list[GrowCluster | RetireNode], Memory]:
    """What is to be done about the number of nodes, and what is remembered if it is."""
    limits, kept = snapshot.config.scaling, snapshot.memory.scaling
    if limits.policy is None:
        return [], snapshot.memory
    emptied = [RetireNode(name, f"{name} is empty and leaves", last=True) for name in _empty(snapshot, kept)]
    if kept.history and 0 <= snapshot.age_s - kept.history[-1].age_s < SAMPLE_EVERY_S:
        return list(emptied), snapshot.memory
    able = [node for node in candidates(snapshot.nodes) if not node.draining]
    measured = all(node.name in snapshot.busy_cores for node in able)
    if not able or not measured or not is_calm(snapshot, layout):
        # Slices that start or come back take more than their work does.
        return list(emptied), snapshot.memory
    history = _recent((*kept.history, _sample(able, snapshot)), max(LEAST_KEPT_S, KEPT_COOL_DOWNS * limits.cool_down_s))
    wish = bounded(named(limits.policy)(history, limits), limits, _needed(snapshot))
    age_s = snapshot.age_s
    wishes = tuple(one for one in (*kept.wishes, (age_s, wish.nodes)) if age_s - one[0] <= limits.cool_down_s)
    kept = replace(kept, history=history, wishes=wishes)
    step: list[GrowCluster | RetireNode] = []
    if due(wish, history, [nodes for _, nodes in wishes], kept.changed_at, limits):
        step = _change(wish, able, snapshot, layout)
    if step:
        going = {one.node for one in step if isinstance(one, RetireNode)}
        kept = replace(kept, changed_at=age_s, retiring=kept.retiring | going)
    return [*emptied, *step], replace(snapshot.memory, scaling=kept)


def _change(wish: Wish, able: list[NodeView], snapshot: Snapshot, layout: Layout) -> list[GrowCluster | RetireNode]:
    here = len(able)
    if wish.nodes > here:
        return [GrowCluster(wish.nodes - here, f"{here} nodes become {wish.nodes}: {wish.reason}")]
    if not is_settled(snapshot, layout):
        return []
    name = _least_to_do(able, snapshot, layout)
    return [RetireNode(name, f"{here} nodes become {here - 1}, {name} goes: {wish.reason}")]


def _least_to_do(able: list[NodeView], snapshot: Snapshot, layout: Layout) -> str:
    """The node whose work is moved most easily; among equals the newest. Domains keep a node as long as they can."""
    sites = Sites(snapshot.by_name, snapshot.assignments, Placing.of(snapshot, layout))
    others = [node.domain for node in able]
    spare = [node for node in able if others.count(node.domain) > 1] or able
    newest_first = sorted(spare, key=_age, reverse=True)
    return min(newest_first, key=lambda node: sites.carried(node.name)).name


def _age(node: NodeView) -> tuple[int, str]:
    """Nodes are numbered as they come: node-10 is newer than node-9."""
    return len(node.name), node.name


def _sample(able: list[NodeView], snapshot: Snapshot) -> Sample:
    busy = sum(snapshot.busy_cores.get(node.name, 0.0) for node in able)
    primaries = [r for node in able for r in node.replicas if r.primary and r.is_back]
    behind = max((replica.behind for replica in primaries), default=0)
    return Sample(snapshot.age_s, snapshot.at, len(able), busy, cores_of(snapshot.config), behind)


def _recent(history: tuple[Sample, ...], kept_s: float) -> tuple[Sample, ...]:
    return tuple(one for one in history if history[-1].age_s - one.age_s <= kept_s)


def _needed(snapshot: Snapshot) -> int:
    """A slice that is to have a secondary, by its scheme or for its objective, needs two nodes."""
    return 2 if any(ROWS[one.scheme] != OFF for one in snapshot.assignments) else 1


def _empty(snapshot: Snapshot, kept: Scaling) -> list[str]:
    """Nodes that were to go and host nothing any more."""
    hosts = {name for one in snapshot.assignments for name in one.hosts}
    going = [node for node in snapshot.nodes if node.name in kept.retiring and node.draining and node.connected]
    return [node.name for node in going if node.name not in hosts and not node.replicas and node.leaves_s is None]
