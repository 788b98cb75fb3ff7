"""One run: new queries, one placement per strategy, one day of host failures seen by all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from understudy.planning.availability.importance import rate
from understudy.planning.availability.placement import Placed, place, uniform_cluster
from understudy.planning.availability.placement.first_fit import primaries
from understudy.planning.availability.selection import select
from understudy.planning.availability.survival import broken
from understudy.simulate.availability.generator import Mix, generate

if TYPE_CHECKING:
    from understudy.planning.availability.workload import Workload


@dataclass(frozen=True)
class Strategy:
    """One line of a figure."""

    heuristic: str = "product"
    spare: float = 50.0
    placement: str = "first-fit"
    selection: str = "simple"
    level: int = 1


@dataclass(frozen=True)
class Experiment:
    """`hosts` carry the system load and the spare load comes as further hosts of the same capacity: the paper
    has 100 hosts of capacity 1 under a load of 100, so replicas need room beside them. `headroom` pays for
    what whole operators cannot fill."""

    strategies: tuple[Strategy, ...]
    crash: tuple[float, ...] = (0.0025, 0.005, 0.01, 0.02, 0.03)
    hosts: int = 100
    load: float = 100.0
    capacity: float = 1.0
    headroom: float = 0.25
    seed: int = 1
    mix: Mix = field(default_factory=Mix)

    def hosts_for(self, spare: float) -> int:
        return ceil((self.hosts + spare / self.capacity) * (1 + self.headroom))


class Row(NamedTuple):
    """The result of one strategy at one crash probability in one run."""

    run: int
    heuristic: str
    spare: float
    placement: str
    selection: str
    level: int
    crash: float
    running: float
    replicated: float
    replica_load: float
    unplaced: int
    queries: int
    operators: int


def simulate(experiment: Experiment, run: int) -> list[Row]:
    """Everything follows from (seed, run): the same rows on any machine, in any partition.

    All strategies see the same queries and the same failures, and a host that fails at one probability fails
    at every larger one, so differences between lines are the strategies' own.
    """
    make, chance, crash = (np.random.default_rng([experiment.seed, run, part]) for part in range(3))
    workload = generate(experiment.load, make, experiment.mix)
    most = max(strategy.spare for strategy in experiment.strategies)
    every = uniform_cluster(experiment.hosts_for(most), experiment.capacity)
    homes = primaries(workload, every)
    threshold = crash.random(len(every.hosts))
    down = threshold[None, :] < np.array(experiment.crash)[:, None]
    rows: list[Row] = []
    for strategy in experiment.strategies:
        placed, used = _replicate(experiment, strategy, workload, homes, chance)
        running = 1.0 - broken(workload, placed.matrix(), down).mean(axis=1)
        replicated = float(np.mean([len(hosts) > 1 for hosts in placed.copies]))
        for probability, share in zip(experiment.crash, running.tolist(), strict=True):
            rows.append(
                Row(
                    run=run,
                    heuristic=strategy.heuristic,
                    spare=strategy.spare,
                    placement=strategy.placement,
                    selection=strategy.selection,
                    level=strategy.level,
                    crash=probability,
                    running=share,
                    replicated=replicated,
                    replica_load=used,
                    unplaced=len(placed.unplaced),
                    queries=len(workload.queries),
                    operators=len(workload.operators),
                )
            )
    return rows


def _replicate(
    experiment: Experiment, strategy: Strategy, workload: Workload, homes: Placed, chance: np.random.Generator
) -> tuple[Placed, float]:
    """A replica that finds no room is left out and counted: the day goes on without it."""
    primary = tuple(hosts[0] for hosts in homes.copies)
    count = max(experiment.hosts_for(strategy.spare), max(primary) + 1)
    cluster = uniform_cluster(count, experiment.capacity)
    rating = rate(strategy.heuristic, workload, chance)
    selected = select(strategy.selection, workload, rating, strategy.spare, strategy.level)
    placed = place(strategy.placement, workload, cluster, primary, selected.levels, rating.operators)
    return placed, selected.used
