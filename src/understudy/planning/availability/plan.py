"""The three steps of Grüneberger et al. 2013, §3, in one call: rate, select, place; and the resulting availability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from understudy.errors import InvalidInput
from understudy.planning.availability.importance import rate
from understudy.planning.availability.placement import Placed, place
from understudy.planning.availability.placement.first_fit import primaries
from understudy.planning.availability.selection import Selected, select
from understudy.planning.availability.survival import Availability, availability

if TYPE_CHECKING:
    import numpy as np

    from understudy.planning.availability.placement import Cluster
    from understudy.planning.availability.workload import Workload
    from understudy.planning.status import Status


@dataclass(frozen=True)
class Recipe:
    heuristic: str = "product"
    selection: str = "simple"
    placement: str = "first-fit"
    level: int = 1


@dataclass(frozen=True, eq=False)
class Plan:
    """`before` is the availability with primaries alone, `after` with the replicas that found a place."""

    workload: Workload
    cluster: Cluster
    selected: Selected
    placed: Placed
    before: Availability
    after: Availability

    @property
    def status(self) -> Status:
        return self.placed.status

    @property
    def cost(self) -> float:
        return cost_of(self.workload, self.cluster, self.placed.copies)


def cost_of(workload: Workload, cluster: Cluster, copies: tuple[tuple[int, ...], ...]) -> float:
    """What the replicas take: load times the price of the host. Primaries run anyway and are not counted."""
    prices = cluster.prices
    load = workload.load.tolist()
    costs = [load[operator] * prices[host] for operator, hosts in enumerate(copies) for host in hosts[1:]]
    return float(sum(costs))


def primary_hosts(workload: Workload, cluster: Cluster) -> tuple[int, ...]:
    """First-fit; without a place for every primary there is nothing to replicate, so that is an error."""
    placed = primaries(workload, cluster)
    if placed.unplaced:
        shown = "; ".join(str(unplaced) for unplaced in placed.unplaced[:5])
        more = f" and {len(placed.unplaced) - 5} more" if len(placed.unplaced) > 5 else ""
        raise InvalidInput(
            f"{len(placed.unplaced)} of {len(workload.operators)} primaries fit on no host",
            why=shown + more,
            fix="add hosts or capacity, or split the operators that are too large",
        )
    return tuple(hosts[0] for hosts in placed.copies)


def replicate(
    workload: Workload,
    cluster: Cluster,
    primary: tuple[int, ...],
    spare: float,
    recipe: Recipe,
    rng: np.random.Generator,
) -> tuple[Selected, Placed]:
    rating = rate(recipe.heuristic, workload, rng)
    selected = select(recipe.selection, workload, rating, spare, recipe.level)
    placed = place(recipe.placement, workload, cluster, primary, selected.levels, rating.operators)
    return selected, placed


def plan(
    workload: Workload,
    cluster: Cluster,
    spare: float,
    recipe: Recipe,
    rng: np.random.Generator,
    primary: tuple[int, ...] | None = None,
) -> Plan:
    homes = primary_hosts(workload, cluster) if primary is None else primary
    selected, placed = replicate(workload, cluster, homes, spare, recipe, rng)
    bare = Placed(tuple((host,) for host in homes))
    return Plan(
        workload,
        cluster,
        selected,
        placed,
        before=availability(workload, cluster, bare, rng),
        after=availability(workload, cluster, placed, rng),
    )
