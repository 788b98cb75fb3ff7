"""What the manager has seen of every replica, for costs, recoveries and the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from understudy.model.messages import ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.run import Frozen
from understudy.model.spans import Span, union

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
_GROW = ("rows_in", "rows_out", "bytes_published", "first_bags", "divergences")


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
        seen = [ReplicaStatus(**value) for value in saved.get("replicas", {}).values()]
        self._replicas = {(replica.slice, replica.generation): replica for replica in seen}
        self._past = {SliceId.parse(key): ReplicaStatus(**value) for key, value in saved.get("past", {}).items()}
        self.nodes = {key: NodeCosts(**value) for key, value in saved.get("nodes", {}).items()}

    @property
    def replicas(self) -> tuple[ReplicaStatus, ...]:
        """Everything that was seen, in no more entries than the slices have replicas."""
        return (*self._past.values(), *self._replicas.values())

    def see(self, replicas: Iterable[ReplicaStatus]) -> None:
        for replica in replicas:
            key = replica.slice, replica.generation
            past = self._past.get(replica.slice)
            before = self._replicas.get(key)
            if before is not None and _began_anew(before, replica):
                # Its process was started again before anybody gave it up. What the first one lost stays lost.
                self._past[replica.slice] = added(past, before)
            if before is not None or past is None or replica.generation > past.generation:
                self._replicas[key] = replica
            # Otherwise a zombie that was added up already: it would count twice.

    def see_node(self, name: str, cpu_s: float, memory_bytes: int) -> None:
        costs = self.nodes.pop(name, None) or NodeCosts()
        if cpu_s > costs.cpu_s or memory_bytes > costs.peak_memory_bytes:
            peak = max(costs.peak_memory_bytes, memory_bytes)
            costs = NodeCosts(cpu_s=max(costs.cpu_s, cpu_s), peak_memory_bytes=peak)
        self.nodes[name] = costs

    def compact(self, alive: Mapping[SliceId, frozenset[int]]) -> None:
        """Adds up the replicas of every slice that are neither alive, by generation, nor among the last."""
        of_slice: dict[SliceId, list[ReplicaStatus]] = {}
        for replica in self._replicas.values():
            if replica.generation not in alive.get(replica.slice, frozenset()):
                of_slice.setdefault(replica.slice, []).append(replica)
        for name, gone in of_slice.items():
            for replica in sorted(gone, key=lambda one: one.generation)[:-KEPT_REPLICAS]:
                del self._replicas[name, replica.generation]
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
            "replicas": _dump({f"{name}#{number}": one for (name, number), one in self._replicas.items()}),
            "past": _dump(self._past),
            "nodes": {key: value.model_dump() for key, value in self.nodes.items()},
        }


def _began_anew(before: ReplicaStatus, now: ReplicaStatus) -> bool:
    """Whether a replica of the same generation counts from the beginning: its counters only grow otherwise."""
    lost = _has_lost(before.gaps, now.gaps) or _has_lost(before.forgotten, now.forgotten)
    return lost or any(getattr(now, name) < getattr(before, name) for name in _GROW)


def _has_lost(before: tuple[Span, ...], now: tuple[Span, ...]) -> bool:
    """Whether something is missing in the spans of now. They seldom change, and with every heartbeat they are asked."""
    return before != now and union((*before, *now)) != now


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
