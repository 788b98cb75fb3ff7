"""The 0-1 knapsack, solved exactly for real-valued loads; Grüneberger et al. 2013, §3.2.2, expect it to be too slow.

The undominated (weight, value) pairs of Nemhauser and Ullmann 1969, cut by the bound of Dantzig 1957: a pair that
cannot beat the greedy answer even with a fractional fill of what follows is dropped. Operators come by falling
density, so the bound is tight and a thousand operators take milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.availability.selection.density import by_density
from understudy.planning.availability.selection.selected import SLACK, Selected, fill
from understudy.planning.status import Status

if TYPE_CHECKING:
    from understudy.planning.availability.importance import Rating
    from understudy.planning.availability.workload import Floats, Ints, Workload

MAX_PAIRS = 200_000


def select(workload: Workload, rating: Rating, spare: float, level: int) -> Selected:
    """Each further level is a knapsack of its own with what the levels before have left."""
    levels = np.zeros(len(workload.operators), dtype=np.int64)
    used = 0.0
    status = Status.OPTIMAL
    for _ in range(level):
        taken, proven = knapsack(rating.operators, workload.load, spare - used)
        levels[taken] += 1
        used += float(workload.load[taken].sum())
        if not proven:
            status = Status.FEASIBLE
        if len(taken) < len(levels):
            break
    return Selected(levels, used, status)


def knapsack(value: Floats, weight: Floats, capacity: float, max_pairs: int = MAX_PAIRS) -> tuple[list[int], bool]:
    """Positions of the best set, and whether it is proven: past `max_pairs` the weakest pairs are dropped."""
    order = by_density(value, weight)
    greedy, _ = fill(order, weight, capacity)
    search = _Search(value[order], weight[order], capacity + SLACK, float(value[greedy].sum()), max_pairs)
    best = search.run()
    if best is None:
        return sorted(greedy), search.proven
    return sorted(order[best].tolist()), search.proven


@dataclass
class _Search:
    """`floor` is the best value known; `steps` remembers, per item, whose child each pair is."""

    value: Floats
    weight: Floats
    capacity: float
    floor: float
    max_pairs: int
    proven: bool = True
    steps: list[tuple[Ints, Ints]] = field(default_factory=list)

    def run(self) -> Ints | None:
        start = self.floor
        cumulated_weight = np.concatenate([[0.0], np.cumsum(self.weight)])
        cumulated_value = np.concatenate([[0.0], np.cumsum(self.value)])
        weights, values = np.zeros(1), np.zeros(1)
        for item in range(len(self.value)):
            weights, values, origin = self._extend(item, weights, values)
            bound = self._bound(item + 1, weights, values, cumulated_weight, cumulated_value)
            # A hair below the best known: rounding inside the bound must not drop the best set.
            keep = np.flatnonzero(bound > self.floor * (1 - 1e-12))
            if len(keep) > self.max_pairs:
                keep = np.sort(keep[np.argsort(-bound[keep], kind="stable")[: self.max_pairs]])
                self.proven = False
            weights, values, origin = weights[keep], values[keep], origin[keep]
            self.steps.append((origin // 2, origin % 2))
            if not len(weights):
                return None
            self.floor = max(self.floor, float(values.max()))
        last = int(np.argmax(values))
        if values[last] <= start:
            return None
        return self._trace(last)

    def _extend(self, item: int, weights: Floats, values: Floats) -> tuple[Floats, Floats, Ints]:
        """Every pair without the item and with it, sorted and undominated; origin is 2·parent + taken."""
        fits = np.flatnonzero(weights + self.weight[item] <= self.capacity)
        all_weights = np.concatenate([weights, weights[fits] + self.weight[item]])
        all_values = np.concatenate([values, values[fits] + self.value[item]])
        origin = np.concatenate([2 * np.arange(len(weights)), 2 * fits + 1])
        order = np.lexsort((-all_values, all_weights))
        all_values = all_values[order]
        best_before = np.concatenate([[-np.inf], np.maximum.accumulate(all_values)[:-1]])
        keep = all_values > best_before
        return all_weights[order][keep], all_values[keep], origin[order][keep]

    def _bound(self, item: int, weights: Floats, values: Floats, sums: Floats, worth: Floats) -> Floats:
        """Dantzig: fill the room that is left with the densest remaining items, the last one in part."""
        room = sums[item] + (self.capacity - weights)
        stop = np.searchsorted(sums, room, side="right") - 1
        last = np.minimum(stop, len(self.weight) - 1)
        part = np.where(
            (stop < len(self.weight)) & (self.weight[last] > 0),
            (room - sums[stop]) * self.value[last] / np.maximum(self.weight[last], 1e-300),
            0.0,
        )
        return np.asarray(values + worth[stop] - worth[item] + part)

    def _trace(self, pair: int) -> Ints:
        chosen: list[int] = []
        for item in range(len(self.steps) - 1, -1, -1):
            parent, taken = self.steps[item]
            if taken[pair]:
                chosen.append(item)
            pair = int(parent[pair])
        return np.array(chosen[::-1], dtype=np.int64)
