"""The scheme that protects every slice at the moment, and what protection has cost under each scheme."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from understudy.control.cluster.secondaries import protection
from understudy.model.events import Protected
from understudy.model.names import SliceId
from understudy.model.recovery import Scheme
from understudy.model.report import SchemeCosts
from understudy.model.snapshot import Assignment, NodeView

COUNTERS = ("cpu_s", "bytes_received", "bytes_pulled", "bytes_published")
_FOLLOWED = (*COUNTERS, "bytes_shipped")


class Protections:
    def __init__(self, saved: Mapping[str, Any] | None = None) -> None:
        saved = saved or {}
        self.reached: dict[SliceId, Scheme] = {}
        self._spent = {Scheme(name): dict(SchemeCosts(**value)) for name, value in saved.get("costs", {}).items()}
        self.time: dict[str, dict[str, float]] = {k: dict(v) for k, v in saved.get("time", {}).items()}
        self._asked: dict[SliceId, tuple[Scheme, float]] = {}
        self._seen: dict[tuple[SliceId, int], dict[str, Any]] = {}
        self._looked: float | None = None

    def dump(self) -> dict[str, Any]:
        return {"costs": self._spent, "time": self.time}

    @property
    def costs(self) -> dict[Scheme, SchemeCosts]:
        return {scheme: SchemeCosts(**spent) for scheme, spent in self._spent.items()}

    def ask(self, slice_id: SliceId, scheme: Scheme, now: float) -> None:
        """A switch begins; it is over when the scheme is reached."""
        self._asked[slice_id] = (scheme, now)

    def look(self, assignments: Iterable[Assignment], nodes: Mapping[str, NodeView], now: float) -> list[Protected]:
        """The slices that are protected by another scheme than before, or have reached the one that was asked for."""
        passed = 0.0 if self._looked is None else now - self._looked
        self._looked = now
        alive: set[tuple[SliceId, int]] = set()
        changes = []
        for assignment in assignments:
            name, scheme = assignment.slice, protection(assignment, nodes)
            alive.add((name, assignment.generation))
            if assignment.secondary is not None:
                alive.add((name, assignment.secondary.generation))
            before = self.reached.get(name)
            if before is not None:
                self._spend(assignment, before, nodes, passed)
            if scheme != before:
                self.reached[name] = scheme
                changes.append(Protected(slice=name, scheme=scheme, seconds=self._finish(name, scheme, now)))
            elif name in self._asked and self._asked[name][0] == scheme:
                changes.append(Protected(slice=name, scheme=scheme, seconds=self._finish(name, scheme, now)))
        self._seen = {key: value for key, value in self._seen.items() if key in alive}
        return changes

    def _finish(self, name: SliceId, scheme: Scheme, now: float) -> float | None:
        asked = self._asked.get(name)
        if asked is None or asked[0] != scheme:
            return None
        del self._asked[name]
        return round(now - asked[1], 3)

    def _spend(self, assignment: Assignment, scheme: Scheme, nodes: Mapping[str, NodeView], passed: float) -> None:
        times = self.time.setdefault(str(assignment.slice), {})
        times[scheme] = times.get(scheme, 0.0) + passed
        spent = self._spent.get(scheme)
        if spent is None:
            spent = self._spent[scheme] = dict(SchemeCosts())
        spent["seconds"] += passed
        primary = self._delta(assignment, assignment.node, assignment.generation, nodes)
        spent["primary_cpu_s"] += primary["cpu_s"]
        spent["bytes_shipped"] += primary["bytes_shipped"]
        placed = assignment.secondary
        if placed is not None and placed.node in nodes:
            own = self._delta(assignment, placed.node, placed.generation, nodes)
            for name in COUNTERS:
                spent[name] += own[name]
            spent["memory_bytes"] = max(spent["memory_bytes"], own["memory_bytes"])
            spent["node_s"] += passed / max(1, len(nodes[placed.node].replicas))

    def _delta(
        self, assignment: Assignment, node: str, generation: int, nodes: Mapping[str, NodeView]
    ) -> dict[str, Any]:
        """How far the counters of a replica have moved since we last looked."""
        name = assignment.slice
        view = nodes.get(node)
        replica = view.hosting(assignment.slice, generation) if view else None
        if replica is None:
            return dict.fromkeys((*_FOLLOWED, "memory_bytes"), 0)
        now = {field: getattr(replica, field) for field in _FOLLOWED}
        before = self._seen.get((name, generation), now)
        self._seen[name, generation] = now
        return {field: now[field] - before[field] for field in _FOLLOWED} | {"memory_bytes": replica.state_bytes}
