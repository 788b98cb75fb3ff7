"""What protection takes: the spending now, beside the work alone and beside copying everything.

The two comparisons are estimates from what the primaries do: without protection only their work is left; with every
slice always active all of it happens twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from understudy.model.messages import ReplicaStatus
from understudy.model.page import CostLine
from understudy.model.view import NodeState


def cost_lines(nodes: Sequence[NodeState]) -> tuple[CostLine, ...]:
    primaries = [replica for node in nodes for replica in node.replicas if replica.primary]
    secondaries = [replica for node in nodes for replica in node.replicas if not replica.primary]
    working = sum(any(replica.primary for replica in node.replicas) for node in nodes)
    healthy_secondary = sum(any(not replica.primary for replica in node.replicas) for node in nodes)
    return (
        _line("CPU", "s", _cpu(primaries, nodes), sum(replica.cpu_s for replica in secondaries)),
        _line("state in memory", "bytes", _state(primaries), _state(secondaries)),
        CostLine(
            resource="network",
            unit="bytes",
            none=_flow(primaries),
            now=_flow(primaries) + _protective_flow(primaries, secondaries),
            always_active=2 * _flow(primaries) + sum(replica.bytes_shipped for replica in primaries),
        ),
        CostLine(
            resource="nodes",
            unit="nodes",
            none=working,
            now=sum(bool(node.replicas) for node in nodes),
            # A copy never shares a node with its primary, so two nodes are the least.
            always_active=max(2 * working, healthy_secondary),
        ),
    )


def _line(resource: str, unit: str, work: float, protection: float) -> CostLine:
    return CostLine(resource=resource, unit=unit, none=work, now=work + protection, always_active=2 * work)


def _cpu(primaries: Sequence[ReplicaStatus], nodes: Sequence[NodeState]) -> float:
    """What replicas say they used; a node that does not tell them apart counts whole."""
    told = sum(replica.cpu_s for replica in primaries)
    return told or sum(node.cpu_s for node in nodes)


def _state(replicas: Sequence[ReplicaStatus]) -> float:
    return sum(replica.state_bytes for replica in replicas)


def _flow(replicas: Sequence[ReplicaStatus]) -> float:
    return sum(replica.bytes_published + replica.bytes_received for replica in replicas)


def _protective_flow(primaries: Sequence[ReplicaStatus], secondaries: Sequence[ReplicaStatus]) -> float:
    """Checkpoints out, checkpoints in, and whatever copies read and write."""
    return (
        sum(replica.bytes_shipped for replica in primaries)
        + sum(replica.bytes_pulled for replica in secondaries)
        + _flow(secondaries)
    )
