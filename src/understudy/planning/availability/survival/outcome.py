"""Which queries are broken when given hosts are down, for many failures at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from understudy.planning.availability.placement.cluster import Cluster
    from understudy.planning.availability.workload import Ints, Workload


def broken(workload: Workload, copies: Ints, down: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """`copies` as in `Placed.matrix()`, `down` as trials × hosts; the result is trials × queries.

    An operator is gone when all its copies are; a query is broken when one of its operators is gone.
    """
    # A last column that is always down stands for "no copy", which is what index -1 then reads.
    padded = np.concatenate([down, np.ones((len(down), 1), dtype=bool)], axis=1)
    gone = padded[:, copies[:, 0]]
    for column in range(1, copies.shape[1]):
        gone = gone & padded[:, copies[:, column]]
    if not len(workload.members):
        return np.zeros((len(down), len(workload.queries)), dtype=bool)
    return np.logical_or.reduceat(gone[:, workload.members], workload.offsets[:-1], axis=1)


def draw_down(cluster: Cluster, trials: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Hosts fall alone or with their whole domain."""
    down = rng.random((trials, len(cluster.hosts))) < cluster.crash
    together = np.array(cluster.group_crash)
    if together.any():
        fallen = rng.random((trials, len(together))) < together
        down |= fallen[:, list(cluster.groups)]
    return down
