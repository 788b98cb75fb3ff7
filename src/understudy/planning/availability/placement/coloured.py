"""Bin packing with colours (seed 002, 3.3.2): as few replicas on one host as possible.

Every replica has a colour of its own, so "at most c colours on a host" means at most c replicas. The
smallest c that packs is taken, from a lower bound upwards; past the upper bound C plain first-fit answers.
Packing with a limit is itself hard, so each c is tried three ways: by importance, by falling load, and, while
the search stays small, exhaustively. Only the last can prove that a c is impossible; `proven` tells.
"""

from __future__ import annotations

from dataclasses import replace
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
    """`most` is the seed's C; without it every c is allowed, up to all replicas on one host."""
    order = in_order(levels, importance)
    bins = occupied(workload, cluster, primary)
    if not order:
        return Placed(tuple((host,) for host in primary), colours=0, proven=True)
    highest = len(order) if most is None else min(most, len(order))
    start = fewest(workload, bins, order)
    proven = True
    unlimited = pack(workload, bins.limited(None), primary, order)
    for limit in range(start, highest + 1):
        placed, exhausted = _try(workload, bins, primary, order, limit)
        if placed is not None:
            return replace(placed, colours=_highest(placed, len(cluster.hosts)), proven=proven)
        proven = proven and exhausted
        if unlimited.unplaced and limit >= max(unlimited_counts(unlimited, len(cluster.hosts))):
            break  # plain first-fit could not place them all either: a larger c changes nothing
    return replace(unlimited, note=f"no packing with at most {highest} replicas on a host; plain first-fit")


def unlimited_counts(placed: Placed, hosts: int) -> list[int]:
    flat = [host for copies in placed.copies for host in copies[1:]]
    counts: list[int] = np.bincount(np.array(flat, dtype=np.int64), minlength=hosts).tolist()
    return counts


def _highest(placed: Placed, hosts: int) -> int:
    return max(unlimited_counts(placed, hosts))


def fewest(workload: Workload, bins: Bins, order: list[int]) -> int:
    """The smallest c that counting allows: a host holds at most c, and no more than fit by load."""
    sums = np.cumsum(np.sort(workload.load[order]))
    room = np.searchsorted(sums, np.array(bins.cpu) + 1e-9, side="right")
    for limit in range(1, len(order) + 1):
        if int(np.minimum(room, limit).sum()) >= len(order):
            return limit
    return len(order)


def _try(
    workload: Workload, bins: Bins, primary: tuple[int, ...], order: list[int], limit: int
) -> tuple[Placed | None, bool]:
    """A packing, or None and whether none can exist."""
    by_load = sorted(order, key=lambda operator: -workload.load[operator])
    for attempt in (order, by_load):
        placed = pack(workload, bins.limited(limit), primary, attempt)
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
