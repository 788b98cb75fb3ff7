"""The simulated machine: how long starts, transfers and recoveries take, with random scatter.

Measured on Spark 4.3 (docs/benchmarks.md and before it; two cores, checkpoints on tmpfs): noticing a kill 0.24–0.36 s,
a warm session starts a query in 0.9 s, a new node is ready after 5–9 s. Derived: 75 MB/s, because a million keys (38 MB
of RocksDB) made the recovery of a cold standby 0.5 s longer. Assumed: 1.9 s to start where the operator was never seen,
250 MB/s for shipped files, 50 ms to wire, and how much each step scatters. The controller knows none of these figures:
it sees only what its slices went through.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.control.schemes.series import Transfer
from understudy.model.capabilities import ROWS, Capability
from understudy.model.recovery import Guarantee, Scheme

MB = 1 << 20
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Machine:
    detect_s: tuple[float, float] = (0.24, 0.36)
    start_s: float = 0.9
    fresh_s: float = 1.9
    node_s: tuple[float, float] = (5.0, 9.0)
    wire_s: float = 0.05
    read_bps: float = 250.0 * MB
    load_bps: float = 75.0 * MB
    fixed_s: float = 0.003
    noise: float = 0.12
    """Scatter of every step, as the standard deviation of its logarithm."""

    def around(self, value: float, rng: np.random.Generator) -> float:
        return value * float(np.exp(rng.normal(0.0, self.noise)))

    def read(self, size: float, rng: np.random.Generator) -> Transfer:
        return Transfer(int(size), self.around(self.fixed_s + size / self.read_bps, rng))

    def load(self, size: float, rng: np.random.Generator) -> Transfer:
        return Transfer(int(size), self.around(self.fixed_s + size / self.load_bps, rng))

    def noticed(self, rng: np.random.Generator) -> float:
        return float(rng.uniform(*self.detect_s))

    def new_node(self, rng: np.random.Generator) -> float:
        return float(rng.uniform(*self.node_s))


@dataclass(frozen=True)
class Situation:
    """A slice at the moment its node dies. `batches`: of the epochs since the last shipped checkpoint, and the next."""

    scheme: Scheme
    guarantee: str
    state_bytes: float
    batches: Floats
    room: bool
    contention: float = 1.0


@dataclass(frozen=True)
class Actual:
    detect: float
    deploy: float
    read_checkpoint: float
    wire: float
    replay: float
    first_bag: float

    @property
    def total(self) -> float:
        return self.detect + self.deploy + self.read_checkpoint + self.wire + self.replay + self.first_bag


def recover(machine: Machine, slice_: Situation, rng: np.random.Generator) -> Actual:
    """The steps that a slice goes through, by the capabilities that its secondary had on."""
    has = {switch for switch in Capability if ROWS[slice_.scheme].has(switch)}
    if Capability.SENDS in has:
        return Actual(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    detect = machine.noticed(rng)
    busy = slice_.contention
    if Capability.PROCESSES in has:
        # It works at its own pace; at worst it has just begun with the batch that is missing.
        rest = busy * machine.around(float(slice_.batches[-1]), rng) * rng.random()
        return Actual(detect, 0.0, 0.0, machine.around(machine.wire_s, rng), 0.0, rest)
    wire = 0.0 if Capability.RECEIVES in has else machine.around(machine.wire_s, rng)
    replayed = slice_.batches[:-1].sum() if Guarantee(slice_.guarantee).replays else 0.0
    return Actual(
        detect,
        busy * _deploy(machine, slice_, has, rng),
        busy * _read(machine, slice_, has, rng),
        wire,
        busy * machine.around(float(replayed), rng),
        busy * machine.around(float(slice_.batches[-1]), rng),
    )


def _deploy(machine: Machine, slice_: Situation, has: set[Capability], rng: np.random.Generator) -> float:
    if Capability.SYNCED in has:
        return 0.0
    if Capability.DEPLOYED in has:
        return machine.around(machine.start_s, rng)
    return machine.around(machine.fresh_s, rng) + (0.0 if slice_.room else machine.new_node(rng))


def _read(machine: Machine, slice_: Situation, has: set[Capability], rng: np.random.Generator) -> float:
    if slice_.guarantee == Guarantee.AMNESIA or Capability.RECEIVES in has:
        return 0.0
    load = machine.load(slice_.state_bytes, rng).seconds
    return load if Capability.SYNCED in has else load + machine.read(slice_.state_bytes, rng).seconds
