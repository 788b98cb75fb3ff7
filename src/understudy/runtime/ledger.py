"""What the manager has seen of every replica, for costs, recoveries and the report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from understudy.model.messages import ReplicaStatus
from understudy.model.run import Frozen


class NodeCosts(Frozen):
    cpu_s: float = 0.0
    peak_memory_bytes: int = 0


class Ledger:
    """Counters of replicas and nodes survive them: a dead replica's last report still counts."""

    def __init__(self, saved: dict[str, Any] | None) -> None:
        saved = saved or {}
        self.replicas = {key: ReplicaStatus(**value) for key, value in saved.get("replicas", {}).items()}
        self.nodes = {key: NodeCosts(**value) for key, value in saved.get("nodes", {}).items()}

    def see(self, replicas: Iterable[ReplicaStatus]) -> None:
        for replica in replicas:
            self.replicas[f"{replica.slice}#{replica.generation}"] = replica

    def see_node(self, name: str, cpu_s: float, memory_bytes: int) -> None:
        before = self.nodes.get(name, NodeCosts())
        peak = max(before.peak_memory_bytes, memory_bytes)
        self.nodes[name] = NodeCosts(cpu_s=max(before.cpu_s, cpu_s), peak_memory_bytes=peak)

    def dump(self) -> dict[str, Any]:
        return {
            "replicas": {key: value.model_dump(mode="json") for key, value in self.replicas.items()},
            "nodes": {key: value.model_dump() for key, value in self.nodes.items()},
        }
