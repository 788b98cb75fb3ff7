"""`structure-aware` (Su and Zhou 2016, §IV-C, Algorithms 3 to 5): grow complete trees, part by part.

Algorithm 5 starts with one tree in every sub-topology and then always takes the extension, of any
sub-topology, that gains most per replica. Algorithm 4 extends a full sub-topology by one task, algorithm 3 a
structured one by the segments of a unit, completed through its neighbours. We had no listing of
Algorithm 3 and rebuilt it from the prose, with two readings of our own: among several connected segments the cheapest
is taken, then the one worth most; gains are measured on the whole plan, with the other
sub-topologies as they stand.

Segments that still form no tree, because an output is read along two ways, are completed task by task.

As in the paper there is no plan below one replica per operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.replication.bounds import quick_bound
from understudy.planning.replication.closure import Closure
from understudy.planning.replication.deadline import Deadline
from understudy.planning.replication.metrics import Metrics
from understudy.planning.replication.plan import PlanRequest, ReplicationPlan, answer
from understudy.planning.replication.structure import SubTopology, Unit, neighbours, sub_topologies, units
from understudy.planning.status import Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from understudy.planning.replication.flows import Floats
    from understudy.planning.replication.metrics import Metric

_AT_ONCE = 256
_NOTHING: frozenset[int] = frozenset()


def plan(request: PlanRequest) -> ReplicationPlan:
    deadline = Deadline(request.time_limit_s)
    metrics = Metrics(request.problem)
    tasks: set[int] = set()
    if request.budget >= len(request.problem.operators):
        tasks = grow(request, metrics, deadline)
    bound = quick_bound(request)
    status = Status.TIMEOUT if deadline.over() and not tasks else Status.FEASIBLE
    return answer(
        request,
        "structure-aware",
        tasks,
        status=status,
        upper_bound=bound,
        deadline=deadline,
        metrics=metrics,
    )


def grow(request: PlanRequest, metrics: Metrics, deadline: Deadline) -> set[int]:
    """Algorithm 5."""
    parts = [
        (_FullPart if sub.full else _StructuredPart)(metrics, sub, request.metric)
        for sub in sub_topologies(metrics.network)
    ]
    chosen: set[int] = set()
    for part in parts:
        chosen |= part.first(request.budget - len(chosen))
    offers = [part.extension(chosen, request.budget - len(chosen)) for part in parts]
    while len(chosen) < request.budget and not deadline.over():
        left = request.budget - len(chosen)
        offers = [
            part.extension(chosen, left) if len(offer) > left else offer
            for part, offer in zip(parts, offers, strict=True)
        ]
        best = _best_offer(metrics, request.metric, chosen, offers)
        if best is None:
            break
        chosen |= offers[best]
        offers[best] = parts[best].extension(chosen, request.budget - len(chosen))
    return chosen


def _best_offer(metrics: Metrics, metric: Metric, chosen: set[int], offers: list[frozenset[int]]) -> int | None:
    usable = [i for i, offer in enumerate(offers) if offer]
    if not usable:
        return None
    alive = np.stack([metrics.alive(chosen | offers[i]) for i in usable])
    gains = metrics.values(alive, metric) - metrics.value(metrics.alive(chosen), metric)
    density = gains / [len(offers[i]) for i in usable]
    top = int(np.argmax(np.round(density, 15)))
    return usable[top] if gains[top] > 0 else None


class _Part:
    """A sub-topology, planned as if all others were fully alive: full streams make that harmless."""

    def __init__(self, metrics: Metrics, sub: SubTopology, metric: Metric) -> None:
        self.metrics = metrics
        self.metric = metric
        self.sub = sub
        self.inside = np.zeros(metrics.problem.task_count, dtype=bool)
        for position in sub.operators:
            self.inside[slice(*metrics.network.bounds[position])] = True

    def own(self, chosen: set[int]) -> set[int]:
        return {task for task in chosen if self.inside[task]}

    def alive(self, tasks: set[int] | frozenset[int]) -> NDArray[np.bool_]:
        return ~self.inside | self.metrics.alive(tasks)

    def values(self, sets: list[set[int]] | list[frozenset[int]]) -> Floats:
        parts = [
            self.metrics.values(np.stack([self.alive(s) for s in sets[i : i + _AT_ONCE]]), self.metric)
            for i in range(0, len(sets), _AT_ONCE)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def first(self, limit: int) -> frozenset[int]:
        raise NotImplementedError

    def extension(self, chosen: set[int], limit: int) -> frozenset[int]:
        """New tasks worth adding, or none."""
        raise NotImplementedError


class _FullPart(_Part):
    """Algorithm 4: inside an operator the order of tasks never changes, so it is found once."""

    def __init__(self, metrics: Metrics, sub: SubTopology, metric: Metric) -> None:
        super().__init__(metrics, sub, metric)
        everything = np.ones(metrics.problem.task_count, dtype=bool)
        self.ranked: list[list[int]] = []
        for position in sorted(sub.operators):
            first, end = metrics.network.bounds[position]
            alive = np.repeat(everything[None], end - first, axis=0)
            alive[:, first:end] = np.eye(end - first, dtype=bool)
            gain = metrics.values(alive, metric)
            self.ranked.append((first + np.argsort(-np.round(gain, 12), kind="stable")).tolist())

    def first(self, limit: int) -> frozenset[int]:
        return frozenset(ranking[0] for ranking in self.ranked) if len(self.ranked) <= limit else _NOTHING

    def extension(self, chosen: set[int], limit: int) -> frozenset[int]:
        own = self.own(chosen)
        offers = [next((t for t in ranking if t not in own), None) for ranking in self.ranked]
        fresh = [task for task in offers if task is not None]
        if not fresh or limit < 1:
            return _NOTHING
        values = self.values([own | {task} for task in fresh])
        return frozenset({fresh[int(np.argmax(np.round(values, 12)))]})


class _StructuredPart(_Part):
    """Algorithm 3: a segment that helps at once, or one completed by a search through the units around it."""

    def __init__(self, metrics: Metrics, sub: SubTopology, metric: Metric) -> None:
        super().__init__(metrics, sub, metric)
        self.units: list[Unit] = units(metrics.network, sub.operators)
        self.near = neighbours(metrics.network, self.units)
        self.closure = Closure(metrics, sub.operators)
        self.worth = [self._worths(unit) for unit in self.units]

    def _worths(self, unit: Unit) -> Floats:
        """Of each segment, when it is all that is left of its unit."""
        members = {t for position in unit.operators for t in range(*self.metrics.network.bounds[position])}
        others = {t for t in np.flatnonzero(self.inside).tolist() if t not in members}
        return self.values([others | segment for segment in unit.segments])

    def first(self, limit: int) -> frozenset[int]:
        return self.extension(set(), limit)

    def extension(self, chosen: set[int], limit: int) -> frozenset[int]:
        own = self.own(chosen)
        base = float(self.values([own])[0])
        places = [
            (k, i)
            for k, unit in enumerate(self.units)
            for i, segment in enumerate(unit.segments)
            if 0 < len(segment - own) <= limit
        ]
        candidates = [self.units[k].segments[i] - own for k, i in places]
        gains = self.values([own | c for c in candidates]) - base
        for n in np.flatnonzero(gains <= 1e-15):
            found = self._completed(places[n], own, limit)
            # Where an output is read twice, one segment per unit is not always a tree.
            candidates[n] = frozenset(self.closure.of(set(found or candidates[n]), own) - own)
            if len(candidates[n]) > limit:
                candidates[n] = _NOTHING
        kept = [c for c in dict.fromkeys(candidates) if c]
        if not kept:
            return _NOTHING
        density = (self.values([own | c for c in kept]) - base) / [len(c) for c in kept]
        top = int(np.argmax(np.round(density, 15)))
        return kept[top] if density[top] > 0 else _NOTHING

    def _completed(self, start: tuple[int, int], own: set[int], limit: int) -> frozenset[int]:
        """Breadth-first over the units; each adds one segment connected to the one it was reached from."""
        new = set(self.units[start[0]].segments[start[1]] - own)
        visited, queue = {start[0]}, [start]
        while queue:
            current = queue.pop(0)
            options: dict[int, list[int]] = {}
            for unit, segment in self.near.get(current, ()):
                if unit not in visited:
                    options.setdefault(unit, []).append(segment)
            for unit, segments in options.items():
                best = min(self._price(unit, s, own | new) for s in segments)[-1]
                new |= self.units[unit].segments[best] - own
                if len(new) > limit:
                    return _NOTHING
                visited.add(unit)
                queue.append((unit, best))
        return frozenset(new)

    def _price(self, unit: int, segment: int, held: set[int]) -> tuple[int, float, int]:
        cost = len(self.units[unit].segments[segment] - held)
        return cost, -float(self.worth[unit][segment]), segment
