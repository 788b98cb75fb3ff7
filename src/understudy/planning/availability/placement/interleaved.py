"""Interleaved placement (Martin 2015, §6.2.4): a dead host's work falls on all the others in equal parts.

Each replica goes to the host that has least of this primary host's load so far. `control/placement/interleaved.py` has
the rule, by which live secondaries are placed too. Here the capacity of the hosts comes on top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.control.placement import Question, interleaved
from understudy.planning.availability.placement.bins import SLACK
from understudy.planning.availability.placement.placed import Placed, Unplaced

if TYPE_CHECKING:
    from understudy.planning.availability.placement.cluster import Cluster
    from understudy.planning.availability.workload import Floats, Ints, Workload


def place(workload: Workload, cluster: Cluster, primary: tuple[int, ...], levels: Ints, importance: Floats) -> Placed:
    spread = _Spread(workload, cluster, primary)
    rank = np.argsort(np.argsort(-importance, kind="stable"), kind="stable")
    # By load within a host: large slices first leave the smallest differences at the end.
    order = np.lexsort((rank, -workload.load, np.array(primary, dtype=np.int64)))
    for number in range(1, int(levels.max(initial=0)) + 1):
        spread.next_round()
        for operator in order[levels[order] >= number].tolist():
            spread.add(operator, number)
    return spread.result()


class _Spread:
    def __init__(self, workload: Workload, cluster: Cluster, primary: tuple[int, ...]) -> None:
        self.workload = workload
        self.groups = np.array(cluster.groups)
        where = np.array(primary, dtype=np.int64)
        hosts = len(cluster.hosts)
        self.cpu = np.array([h.cpu for h in cluster.hosts]) - np.bincount(where, workload.load, hosts)
        self.network = np.array([h.network for h in cluster.hosts]) - np.bincount(where, workload.network, hosts)
        self.copies = [[host] for host in primary]
        self.unplaced: list[Unplaced] = []
        self.carried = np.zeros(hosts)
        self.uneven = False
        self.next_round()

    def next_round(self) -> None:
        self.source = -1

    def add(self, operator: int, number: int) -> None:
        load, network = float(self.workload.load[operator]), float(self.workload.network[operator])
        home = self.copies[operator][0]
        if home != self.source:
            self.source, self.share = home, np.zeros(len(self.cpu))
        others = np.ones(len(self.cpu), dtype=bool)
        for host in self.copies[operator]:
            others &= self.groups != self.groups[host]
        room = others & (self.cpu + SLACK >= load) & (self.network + SLACK >= network)
        if not room.any():
            reason = f"no other host or domain has {load:.4g} CPU and {network:.4g} network free"
            self.unplaced.append(Unplaced(self.workload.operators[operator], number, reason))
            return
        self.uneven |= bool(self.share[room].min() > self.share[others].min() + SLACK)
        host = interleaved.choose(Question(home, room, self.share, self.carried))
        self.share[host] += load
        self.carried[host] += load
        self.cpu[host] -= load
        self.network[host] -= network
        self.copies[operator].append(host)

    def result(self) -> Placed:
        note = "capacity forced uneven shares" if self.uneven else ""
        return Placed(tuple(map(tuple, self.copies)), tuple(self.unplaced), note=note)
