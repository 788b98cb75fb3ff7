"""Bin packing with colours (Grüneberger et al. 2013, §3.3.2): as few replicas on one host as possible.

Every replica has a colour of its own, so "at most c colours on a host" means at most c replicas. The
smallest c that packs is taken; past the upper bound C plain first-fit is used. Packing with a limit is itself
hard, so each c is tried three ways: by importance, by falling load, and, with few replicas, exhaustively.
Only the last can prove that a c is impossible; `proven` tells.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.availability.placement.bins import Bins, groups_of
from understudy.planning.availability.placement.first_fit import in_order, occupied, pack
from understudy.planning.availability.placement.placed import Placed

if TYPE_CHECKING:
    from understudy.planning.availability.placement.cluster import Cluster
    from understudy.planning.availability.workload import Floats, Ints, Workload

SEARCH_STEPS = 2_000
SEARCH_REPLICAS = 24


def place(
    workload: Workload,
    cluster: Cluster,
    primary: tuple[int, ...],
    levels: Ints,
    importance: Floats,
    most: int | None = None,
) -> Placed:
    """`most` is the upper bound C; without it every c is allowed, up to all replicas on one host."""
    order = in_order(levels, importance)
    if not order:
        return Placed(tuple((host,) for host in primary), colours=0, proven=True)
    task = _Task(workload, occupied(workload, cluster, primary), primary, order)
    unlimited = pack(workload, task.bins.limited(None), primary, order)
    # Plain first-fit is a packing with the c it happens to need: no larger one has to be looked at.
    highest = len(order) if unlimited.unplaced else _highest(unlimited)
    highest = highest if most is None else min(most, highest)
    lowest = fewest(workload, task.bins, order)
    small = len(order) <= SEARCH_REPLICAS
    placed, proven = _upwards(task, lowest, highest) if small else _halving(task, lowest, highest)
    if placed is not None:
        return replace(placed, colours=_highest(placed), proven=proven)
    return replace(unlimited, note=f"no packing with at most {highest} replicas on a host; plain first-fit")


@dataclass(frozen=True)
class _Task:
    workload: Workload
    bins: Bins
    primary: tuple[int, ...]
    order: list[int]


def _upwards(task: _Task, lowest: int, highest: int) -> tuple[Placed | None, bool]:
    """One c after the other; proven while every c passed over was searched to the end."""
    proven = True
    for limit in range(lowest, highest + 1):
        placed, exhausted = _try(task, limit)
        if placed is not None:
            return placed, proven
        proven = proven and exhausted
    return None, proven


def _halving(task: _Task, lowest: int, highest: int) -> tuple[Placed | None, bool]:
    """For many replicas: a c that packs next to one that does not pack; proven only at the lower bound."""
    best: Placed | None = None
    low, high = lowest, highest
    while low <= high:
        limit = (low + high) // 2 if best is not None or low == high else high
        placed, _ = _try(task, limit)
        if placed is not None:
            best, high = placed, _highest(placed) - 1
        elif limit == highest:
            return None, False
        else:
            low = limit + 1
    return best, best is not None and _highest(best) == lowest


def _highest(placed: Placed) -> int:
    """The most replicas on one host."""
    return max(Counter(host for copies in placed.copies for host in copies[1:]).values(), default=0)


def fewest(workload: Workload, bins: Bins, order: list[int]) -> int:
    """The smallest c that counting allows: a host holds at most c, and no more than fit by load."""
    sums = np.cumsum(np.sort(workload.load[order]))
    room = np.searchsorted(sums, np.array(bins.cpu) + 1e-9, side="right")
    for limit in range(1, len(order) + 1):
        if int(np.minimum(room, limit).sum()) >= len(order):
            return limit
    return len(order)


def _try(task: _Task, limit: int) -> tuple[Placed | None, bool]:
    """A packing, or None and whether none can exist."""
    workload, bins, primary, order = task.workload, task.bins, task.primary, task.order
    by_load = sorted(order, key=lambda operator: -workload.load[operator])
    for attempt in (order, by_load):
        placed = pack(workload, bins.limited(limit), primary, attempt, all_or_nothing=True)
        if not placed.unplaced:
            return placed, True
    if len(order) > SEARCH_REPLICAS:
        return None, False
    search = _Exhaustive(workload, bins.limited(limit), [[host] for host in primary], by_load)
    if search.run(0):
        return Placed(tuple(map(tuple, search.copies))), True
    return None, search.steps < SEARCH_STEPS


class _Exhaustive:
    """Backtracking over hosts, largest replica first, until the step budget is gone."""

    def __init__(self, workload: Workload, bins: Bins, copies: list[list[int]], order: list[int]) -> None:
        self.bins = bins
        self.copies = copies
        self.order = order
        self.load = workload.load.tolist()
        self.network = workload.network.tolist()
        self.steps = 0

    def run(self, depth: int) -> bool:
        if depth == len(self.order):
            return True
        operator = self.order[depth]
        load, network = self.load[operator], self.network[operator]
        barred = groups_of(self.bins, self.copies[operator])
        for host in range(len(self.bins.cpu)):
            if self.steps >= SEARCH_STEPS:
                return False
            if self.bins.groups[host] in barred or not self.bins.fits(host, load, network):
                continue
            self.steps += 1
            self.bins.take(host, load, network)
            self.copies[operator].append(host)
            if self.run(depth + 1):
                return True
            self.copies[operator].pop()
            self.bins.give_back(host, load, network)
        return False
