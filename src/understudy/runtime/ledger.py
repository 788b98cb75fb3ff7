"""What the manager has seen of every replica, for costs, recoveries and the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from understudy.model.messages import ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.run import Frozen
from understudy.model.spans import union

KEPT_REPLICAS = 4
"""Replicas of a slice that are kept one by one though they are gone; those before them are added up."""
KEPT_NODES = 1_000
EARLIER = "earlier nodes"

_SUMS = (
    "rows_in",
    "rows_out",
    "bytes_received",
    "bytes_pulled",
    "bytes_published",
    "bytes_shipped",
    "first_bags",
    "read_back",
    "divergences",
    "cpu_s",
)


class NodeCosts(Frozen):
    cpu_s: float = 0.0
    peak_memory_bytes: int = 0


class Ledger:
    """Counters of replicas and nodes survive them: a dead replica's last report still counts.

    `past` has one entry for every slice: the replicas that are gone for long, added up as if they had been one. Its
    generation is the highest among them.
    """

    def __init__(self, saved: dict[str, Any] | None) -> None:
        saved = saved or {}
        self._replicas = {key: ReplicaStatus(**value) for key, value in saved.get("replicas", {}).items()}
        self._past = {SliceId.parse(key): ReplicaStatus(**value) for key, value in saved.get("past", {}).items()}
        self.nodes = {key: NodeCosts(**value) for key, value in saved.get("nodes", {}).items()}

    @property
    def replicas(self) -> tuple[ReplicaStatus, ...]:
        """Everything that was seen, in no more entries than the slices have replicas."""
        return (*self._past.values(), *self._replicas.values())

    def see(self, replicas: Iterable[ReplicaStatus]) -> None:
        for replica in replicas:
            key = f"{replica.slice}#{replica.generation}"
            past = self._past.get(replica.slice)
            if key in self._replicas or past is None or replica.generation > past.generation:
                self._replicas[key] = replica
            # Otherwise a zombie that was added up already: it would count twice.

    def see_node(self, name: str, cpu_s: float, memory_bytes: int) -> None:
        before = self.nodes.pop(name, NodeCosts())
        peak = max(before.peak_memory_bytes, memory_bytes)
        self.nodes[name] = NodeCosts(cpu_s=max(before.cpu_s, cpu_s), peak_memory_bytes=peak)

    def compact(self, alive: Mapping[SliceId, frozenset[int]]) -> None:
        """Adds up the replicas of every slice that are neither alive, by generation, nor among the last."""
        of_slice: dict[SliceId, list[ReplicaStatus]] = {}
        for replica in self._replicas.values():
            if replica.generation not in alive.get(replica.slice, frozenset()):
                of_slice.setdefault(replica.slice, []).append(replica)
        for name, gone in of_slice.items():
            for replica in sorted(gone, key=lambda one: one.generation)[:-KEPT_REPLICAS]:
                del self._replicas[f"{name}#{replica.generation}"]
                self._past[name] = added(self._past.get(name), replica)
        self._compact_nodes()

    def _compact_nodes(self) -> None:
        """Those that were not heard of for the longest time become one entry."""
        while len(self.nodes) > KEPT_NODES:
            name = next(name for name in self.nodes if name != EARLIER)
            one, sum_ = self.nodes.pop(name), self.nodes.pop(EARLIER, NodeCosts())
            peak = max(one.peak_memory_bytes, sum_.peak_memory_bytes)
            self.nodes[EARLIER] = NodeCosts(cpu_s=one.cpu_s + sum_.cpu_s, peak_memory_bytes=peak)

    def dump(self) -> dict[str, Any]:
        return {
            "replicas": _dump(self._replicas),
            "past": _dump(self._past),
            "nodes": {key: value.model_dump() for key, value in self.nodes.items()},
        }


def added(past: ReplicaStatus | None, replica: ReplicaStatus) -> ReplicaStatus:
    """Two replicas of a slice as one: counters are added, epochs with a loss are joined."""
    if past is None:
        past = ReplicaStatus(slice=replica.slice, generation=replica.generation, primary=False)
    sums = {name: getattr(past, name) + getattr(replica, name) for name in _SUMS}
    return past.model_copy(
        update={
            **sums,
            "generation": max(past.generation, replica.generation),
            "epoch": max(past.epoch, replica.epoch),
            "gaps": union((*past.gaps, *replica.gaps)),
            "forgotten": union((*past.forgotten, *replica.forgotten)),
        }
    )


def _dump(replicas: Mapping[Any, ReplicaStatus]) -> dict[str, Any]:
    return {str(key): value.model_dump(mode="json", exclude_defaults=True) for key, value in replicas.items()}
