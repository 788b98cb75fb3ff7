"""What protecting a slice costs with each scheme, against what its primary uses.

A cost of 1 is a secondary that needs as much as its primary. The share of CPU of a secondary is taken from
measurements of the slice itself once there are some. Until then it is what the schemes are built to stay within: 1.0
for a working copy (0.93 was measured), 0.2 hot, 0.1 cold (0.06 was measured for a waiting query), 0.02 deployed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from understudy.control.schemes.estimates import ACTIVE, COLD, HOT, STANDBY
from understudy.model.capabilities import LADDER, ROWS, rank
from understudy.model.costs import Costs
from understudy.model.messages import ReplicaStatus
from understudy.model.recovery import Scheme

Floats = NDArray[np.float64]

# In the order of LADDER: passive replication, deployed, cold, hot, active standby, active replication.
CPU_SHARES = np.array([0.0, 0.02, 0.1, 0.2, 1.0, 1.0])
# A session that only knows the operator, a waiting query, a query with its state in memory: assumed from 550 MB a
# session and 100 to 250 MB a query, until heartbeats say more.
MEMORY_SHARES = np.array([0.0, 0.3, 0.6, 1.0, 1.0, 1.0])
NODE_SHARES = np.array([float(ROWS[scheme].deployed) for scheme in LADDER])
SHIP_CPU_S = 0.01
"""A shipment: 1 to 3 ms to copy, links, checksums, a marker and fsyncs."""
NEW = 0.2
"""How much the newest interval counts."""
MARKER_BYTES = 4096
WEIGHTLESS = 1e-9
LEAST_BPS = 10_000.0
"""Against a primary that moves next to nothing, a marker would look like a flood."""


@dataclass(frozen=True)
class Usage:
    """What a primary uses a second, and what its secondaries used. Zero means not measured yet.

    `changed_bps` are the bytes of state that change; they are shipped, whatever the interval, and pulled by standbys.
    `shares`: the measured CPU of a secondary over its primary's, for each scheme in the order of LADDER.
    """

    cpu: float = 0.0
    memory_bytes: float = 0.0
    received_bps: float = 0.0
    published_bps: float = 0.0
    changed_bps: float = 0.0
    epoch_s: float = 1.0
    standby_sharers: int = 1
    """Slices whose secondaries share the standby node, and so its price."""
    shares: tuple[float, ...] = (math.nan,) * len(LADDER)
    row: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        flow = (self.received_bps, self.published_bps, self.changed_bps)
        row = (self.cpu, *flow, self.epoch_s, float(self.standby_sharers), *self.shares)
        object.__setattr__(self, "row", row)


def between(usage: Usage, before: ReplicaStatus, now: ReplicaStatus, seconds: float) -> Usage:
    """The primary's rates from two of its statuses; smoothed, because epochs differ and shipments come in bursts."""
    if seconds <= 0 or before.generation != now.generation:
        return usage
    return replace(
        usage,
        cpu=_smoothed(usage.cpu, max(0.0, now.cpu_s - before.cpu_s) / seconds),
        received_bps=_smoothed(usage.received_bps, max(0, now.bytes_received - before.bytes_received) / seconds),
        published_bps=_smoothed(usage.published_bps, max(0, now.bytes_published - before.bytes_published) / seconds),
        changed_bps=_smoothed(usage.changed_bps, max(0, now.bytes_shipped - before.bytes_shipped) / seconds),
    )


def _smoothed(old: float, new: float) -> float:
    """Zero or NaN: nothing is known yet."""
    return new if not old > 0 else (1 - NEW) * old + NEW * new


def secondary_share(usage: Usage, scheme: Scheme, cpu: float) -> Usage:
    """A secondary that is established in a scheme used so much CPU; smoothed, as one interval says little.

    The active schemes do the same work: measured each for itself, they would differ by chance, and a slice would go to
    and fro between them.
    """
    if usage.cpu <= 0 or scheme is Scheme.NONE:
        return usage
    number = rank(scheme)
    share = _smoothed(usage.shares[number], min(cpu / usage.cpu, 2.0))
    alike = (STANDBY, ACTIVE) if number >= STANDBY else (number,)
    return replace(usage, shares=tuple(share if n in alike else known for n, known in enumerate(usage.shares)))


@dataclass(frozen=True)
class Prices:
    """The shares of a secondary by resource, each (slices, schemes), at a shipping interval of one epoch."""

    cpu: Floats
    memory: Floats
    network: Floats
    nodes: Floats
    ship_cpu: Floats
    """What shipping adds to the CPU share at an interval of one epoch; at k epochs it is a k-th."""
    ship_network: Floats


def prices(usages: Sequence[Usage]) -> Prices:
    width = 6 + len(LADDER)
    cells = chain.from_iterable(usage.row for usage in usages)
    table = np.fromiter(cells, np.float64, len(usages) * width).reshape(len(usages), width)
    cpu, received, published, changed, epoch_s, sharers = table[:, :6].T
    measured = table[:, 6:]
    flow = received + published
    known = flow > WEIGHTLESS
    scale = np.maximum(flow, LEAST_BPS)
    receives = np.where(known, received / scale, 0.5)
    sends = np.where(known, published / scale, 0.5)
    changes = np.where(known, changed / scale, 0.1)
    network = np.repeat(changes[:, None], len(LADDER), axis=1)  # shipping, by all of them
    network[:, HOT:] += receives[:, None]
    network[:, ACTIVE] += sends
    network[:, COLD : HOT + 1] += changes[:, None]
    rounds = 1.0 / np.maximum(epoch_s, 1e-3)
    # Before it is measured, a primary counts as a third of a core: a groupBy at a batch a second.
    busy = np.where(cpu > WEIGHTLESS, cpu, 0.3)
    return Prices(
        cpu=np.where(np.isnan(measured), CPU_SHARES, measured),
        memory=np.broadcast_to(MEMORY_SHARES, measured.shape),
        network=network,
        nodes=NODE_SHARES / np.maximum(sharers, 1.0)[:, None],
        ship_cpu=SHIP_CPU_S * rounds / busy,
        ship_network=MARKER_BYTES * rounds / np.where(known, scale, 100.0 * MARKER_BYTES),
    )


def weighted(found: Prices, costs: Costs, schemes: NDArray[np.int64], intervals: Floats) -> Floats:
    """The cost of every candidate (a scheme and an interval) for every slice, as (slices, candidates)."""
    cpu, memory, network, nodes = costs.weights
    ship = found.ship_cpu[:, None] / intervals
    ship_network = found.ship_network[:, None] / intervals
    total = (
        cpu * (found.cpu[:, schemes] + ship)
        + memory * found.memory[:, schemes]
        + network * (found.network[:, schemes] + ship_network)
        + nodes * found.nodes[:, schemes]
    )
    answer: Floats = total / sum(costs.weights)
    return answer
