"""What the state of a slice means, in one word and one sentence."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from understudy.control.cluster.detector import stalls
from understudy.model.capabilities import rank
from understudy.model.config import DEFAULTS, DetectorSection
from understudy.model.layout import Kind
from understudy.model.messages import ReplicaStatus, State
from understudy.model.names import SliceId
from understudy.model.page import Health, SliceLook
from understudy.model.recovery import Scheme
from understudy.model.view import NodeState, RunState, SliceState

JVM_SILENT_S = 1.0
LATE_S = 3.0
"""With short epochs: what the hops of a long chain take together is no lag."""
FEW = 5
"""Epochs nobody counts, however short the objective."""


def may_lag(objective_s: float | None, epoch_s: float, backlog: int) -> int:
    """How many epochs a slice may be behind the newest of the run: a tenth of what slices may run apart at most.

    A slice with an objective must be back within that time after a failure, so it may not be later than that without.
    """
    most = max(FEW, backlog // 10, math.ceil(LATE_S / epoch_s))
    return most if objective_s is None else min(most, max(FEW, math.ceil(objective_s / epoch_s)))


def looks(
    state: RunState,
    slices: Sequence[SliceState],
    worked: Collection[str],
    limits: DetectorSection = DEFAULTS.detector,
) -> tuple[SliceLook, ...]:
    """Every slice with its health and the counters of its primary; `worked` are those that were at work before."""
    nodes = {node.name: node for node in state.nodes}
    return tuple(_look(entry, nodes, entry.slice in worked, limits) for entry in slices)


def _look(entry: SliceState, nodes: Mapping[str, NodeState], worked: bool, limits: DetectorSection) -> SliceLook:
    replica = _primary(entry, nodes)
    health, why = judge(entry, replica, nodes.get(entry.primary), worked, limits)
    counters = replica or ReplicaStatus(slice=SliceId.parse(entry.slice), generation=0)
    return SliceLook(
        **entry.model_dump(),
        health=health,
        why=why,
        rows_in=counters.rows_in,
        rows_out=counters.rows_out,
        state_bytes=counters.state_bytes,
        bytes_published=counters.bytes_published,
        bytes_shipped=counters.bytes_shipped,
    )


def _primary(entry: SliceState, nodes: Mapping[str, NodeState]) -> ReplicaStatus | None:
    node = nodes.get(entry.primary)
    own = [replica for replica in node.replicas if str(replica.slice) == entry.slice] if node else []
    return max(own, key=lambda replica: (replica.primary, replica.generation), default=None)


def judge(
    entry: SliceState,
    replica: ReplicaStatus | None,
    node: NodeState | None,
    worked: bool,
    limits: DetectorSection = DEFAULTS.detector,
) -> tuple[Health, str]:
    """The worst that is true of a slice decides."""
    if entry.state == Health.TENTATIVE:
        return Health.TENTATIVE, "its output is provisional and will be corrected"
    if entry.standing_in:
        return Health.DEGRADED, f"{entry.secondary} stands in for {entry.primary}, which is silent or slow"
    if node is None or not node.connected:
        return Health.DOWN, f"{entry.primary or 'its node'} is gone"
    if entry.kind == Kind.OPERATOR and node.jvm_silent_s > JVM_SILENT_S:
        return Health.DOWN, f"the JVM of {node.name} has not moved for {node.jvm_silent_s:.1f} s"
    if replica is None or replica.state is State.STARTING:
        again = worked or (replica is not None and replica.generation > 1)
        return (Health.DOWN, f"comes back on {entry.primary}") if again else (Health.STARTING, "starts")
    if replica.state is State.FAILED:
        return Health.DOWN, replica.failure.what if replica.failure else "its replica failed"
    return _judge_running(entry, replica, limits)


def _judge_running(entry: SliceState, replica: ReplicaStatus, limits: DetectorSection) -> tuple[Health, str]:
    if stalls(replica, limits):
        return Health.DEGRADED, f"has input and has finished nothing for {replica.stalled_s:.0f} s"
    if replica.generation > 1 and not replica.steps.done:
        return Health.CATCHING_UP, f"replays on {entry.primary} what it had done before"
    if replica.ship_failures:
        times = f"{replica.ship_failures} times in a row" if replica.ship_failures > 1 else "once"
        return Health.DEGRADED, f"works, but its checkpoint could not be shipped, {times}: {replica.ship_error}"
    if entry.late:
        return Health.DEGRADED, f"works on {entry.primary}, but is {entry.lag} epochs behind the newest"
    if entry.throttled:
        return Health.DEGRADED, f"works, but its secondary on {entry.secondary or 'a full node'} is throttled"
    if _rank(entry.protection) < _rank(entry.scheme):
        return Health.DEGRADED, f"works, but has {entry.protection} where {entry.scheme} is wanted"
    moves = f" and moves to {entry.moving}" if entry.moving else ""
    return Health.HEALTHY, f"works on {entry.primary}{moves}"


def _rank(scheme: str) -> int:
    return rank(Scheme(scheme)) if scheme in set(Scheme) else -1
