"""First-fit with neighbours preferred (Grüneberger et al. 2013, §3.3.1).

Hosts that already run predecessors or successors of the operator come first, most of them first; then all
hosts in order. Primaries come in the order their queries came, as a running system gets them; replicas come
by falling importance, so that what does not fit is what matters least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.availability.placement.bins import Bins, groups_of
from understudy.planning.availability.placement.placed import Placed, Unplaced

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.planning.availability.placement.cluster import Cluster
    from understudy.planning.availability.workload import Floats, Ints, Workload


def primaries(workload: Workload, cluster: Cluster) -> Placed:
    """In order of arrival; if an operator then finds no host, again with the largest operators first."""
    arrival = range(len(workload.operators))
    placed = _primaries(workload, cluster, arrival)
    if placed.unplaced:
        by_load = np.argsort(-workload.load, kind="stable").tolist()
        second = _primaries(workload, cluster, by_load)
        if len(second.unplaced) < len(placed.unplaced):
            return second
    return placed


def _primaries(workload: Workload, cluster: Cluster, order: Iterable[int]) -> Placed:
    packing = Packing(workload, Bins(cluster), [[] for _ in workload.operators])
    for operator in order:
        packing.add(operator)
    return packing.result()


def place(workload: Workload, cluster: Cluster, primary: tuple[int, ...], levels: Ints, importance: Floats) -> Placed:
    return pack(workload, occupied(workload, cluster, primary), primary, in_order(levels, importance))


def occupied(workload: Workload, cluster: Cluster, primary: tuple[int, ...]) -> Bins:
    hosts = len(cluster.hosts)
    where = np.array(primary, dtype=np.int64)
    cpu = np.array([host.cpu for host in cluster.hosts]) - np.bincount(where, workload.load, hosts)
    network = np.array([host.network for host in cluster.hosts]) - np.bincount(where, workload.network, hosts)
    return Bins.with_free(cluster, cpu.tolist(), network.tolist())


def in_order(levels: Ints, importance: Floats) -> list[int]:
    """Operators by falling importance, once per replica: all first replicas, then all second ones."""
    order = np.argsort(-importance, kind="stable")
    rounds = range(1, int(levels.max(initial=0)) + 1)
    return [operator for number in rounds for operator in order[levels[order] >= number].tolist()]


def pack(
    workload: Workload,
    bins: Bins,
    primary: tuple[int, ...],
    order: Iterable[int],
    all_or_nothing: bool = False,
) -> Placed:
    packing = Packing(workload, bins, [[host] for host in primary])
    for operator in order:
        if not packing.add(operator) and all_or_nothing:
            break
    return packing.result()


class Packing:
    """Copies placed so far; `add` puts one more copy of an operator somewhere, or notes why it cannot."""

    def __init__(self, workload: Workload, bins: Bins, copies: list[list[int]]) -> None:
        self.workload = workload
        self.bins = bins
        self.copies = copies
        self.unplaced: list[Unplaced] = []
        self._load = workload.load.tolist()
        self._network = workload.network.tolist()

    def add(self, operator: int) -> bool:
        load, network = self._load[operator], self._network[operator]
        barred = groups_of(self.bins, self.copies[operator])
        host = self._beside(operator, load, network, barred)
        if host is None:
            host = self.bins.first(load, network, barred)
        if host is None:
            reason = self.bins.why_not(load, network, barred)
            name = self.workload.operators[operator]
            self.unplaced.append(Unplaced(name, len(self.copies[operator]), reason))
            return False
        self.bins.take(host, load, network)
        self.copies[operator].append(host)
        return True

    def result(self) -> Placed:
        return Placed(tuple(map(tuple, self.copies)), tuple(self.unplaced))

    def _beside(self, operator: int, load: float, network: float, barred: set[int]) -> int | None:
        bins, copies = self.bins, self.copies
        near: dict[int, int] = {}
        for other in self.workload.neighbours[operator]:
            for host in copies[other]:
                near[host] = near.get(host, 0) + 1
        best, most = None, 0
        for host, count in near.items():
            better = count > most or (count == most and best is not None and host < best)
            if better and bins.fits(host, load, network) and bins.groups[host] not in barred:
                best, most = host, count
        return best
