"""What a placement returns: the host of every copy, and what did not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.status import Status

if TYPE_CHECKING:
    from understudy.planning.availability.placement.cluster import Cluster
    from understudy.planning.availability.workload import Floats, Ints, Workload

Copies = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Unplaced:
    """One copy that found no host; number 0 is the primary."""

    operator: str
    copy: int
    reason: str

    def __str__(self) -> str:
        what = "primary" if self.copy == 0 else f"replica {self.copy}"
        return f"{what} of {self.operator}: {self.reason}"


@dataclass(frozen=True)
class Placed:
    """`copies[o]` are the hosts of operator o, the primary first; empty if not even that found a place.

    `colours` is the most replicas on one host where the placement limits them; `proven` says that no smaller
    limit can work.
    """

    copies: Copies
    unplaced: tuple[Unplaced, ...] = ()
    colours: int | None = None
    proven: bool = False
    note: str = ""

    @property
    def status(self) -> Status:
        return Status.INFEASIBLE if self.unplaced else Status.FEASIBLE

    def matrix(self) -> Ints:
        """One row per operator, -1 where there is no further copy."""
        width = max(map(len, self.copies), default=1)
        rows = [(*hosts, *(-1,) * (width - len(hosts))) for hosts in self.copies]
        return np.array(rows, dtype=np.int64).reshape(len(rows), -1)

    @property
    def hosts_used(self) -> int:
        return len({host for hosts in self.copies for host in hosts})


# Workload, cluster, host of every primary, replicas wanted, order of importance → where everything is.
Placer = Callable[["Workload", "Cluster", tuple[int, ...], "Ints", "Floats"], Placed]
