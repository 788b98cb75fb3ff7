"""Hosts for the replicas: placements by name; never two copies of an operator in one domain.

`cluster` describes hosts, `bins` keeps their free room, `placed` is what a placement returns. One file per placement:
`first_fit`, `coloured`, `interleaved`. May import `workload`. Start with `first_fit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.errors import InvalidInput
from understudy.planning.availability.placement import coloured, first_fit, interleaved
from understudy.planning.availability.placement.cluster import Cluster, Host, cluster_of, uniform_cluster
from understudy.planning.availability.placement.placed import Copies, Placed, Placer, Unplaced

if TYPE_CHECKING:
    from understudy.planning.availability.workload import Floats, Ints, Workload

PLACEMENT: dict[str, Placer] = {
    "first-fit": first_fit.place,
    "coloured": coloured.place,
    "interleaved": interleaved.place,
}

__all__ = [
    "PLACEMENT",
    "Cluster",
    "Copies",
    "Host",
    "Placed",
    "Placer",
    "Unplaced",
    "cluster_of",
    "place",
    "uniform_cluster",
]


def place(
    name: str,
    workload: Workload,
    cluster: Cluster,
    primary: tuple[int, ...],
    levels: Ints,
    importance: Floats,
) -> Placed:
    if name not in PLACEMENT:
        raise InvalidInput(
            f"no placement is called {name!r}",
            why="placements are found by name",
            fix=f"choose one of: {', '.join(PLACEMENT)}",
        )
    return PLACEMENT[name](workload, cluster, primary, levels, importance)
