"""How long a slice would be away, for each of the six schemes, from what was measured of it.

The steps follow Martin et al. 2015, tables 1 and 2, as far as our schemes take them after a failure:

| scheme | detect | deploy | read_checkpoint | wire | replay and first bag |
| --- | --- | --- | --- | --- | --- |
| active replication | sources only | | | | |
| active standby | yes | | | publish the spool | |
| passive standby hot | yes | | | | yes, the state is in memory |
| passive standby cold | yes | | load local state | fetch input | yes |
| deployed | yes | start the query | read what was shipped, load it | fetch input | yes |
| passive replication | yes | new to the node, perhaps a new node | read, load | fetch input | yes |

Martin et al. 2015 replay the events since the last checkpoint at the present rate. Our unit is the epoch, and the
primary has just shown how long each takes: the epochs a failure can cost at worst (one interval, and one in flight)
times the slowest recent batch. All slices are estimated at once, in arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.control.schemes.history import Error, History
from understudy.model.capabilities import LADDER
from understudy.model.recovery import SHIP_EVERY, SHIP_SELDOM, Guarantee, Scheme

Floats = NDArray[np.float64]

COLUMNS = (
    "detect",
    "start",
    "fresh",
    "wire_receive",
    "wire_send",
    "load",
    "read",
    "batch",
    "lag",
    "refresh_every",
    "contention",
    "source",
    "batch_jump",
    "load_jump",
    "read_jump",
    *(f"factor_{scheme}" for scheme in LADDER),
)
"""What `History.row` holds."""

STEPS = (
    "detect",
    "deploy",
    "read_checkpoint",
    "wire_receive",
    "wire_send",
    "replay",
    "first_bag",
    "correction",
)
"""The steps of `messages.Steps`, with detection before them and what past predictions missed after them."""

PASSIVE, DEPLOYED, COLD, HOT, STANDBY, ACTIVE = range(len(LADDER))
DEFAULT_INTERVALS = np.array([SHIP_EVERY.get(scheme, SHIP_SELDOM) for scheme in LADDER], dtype=np.float64)


@dataclass(frozen=True)
class Facts:
    """The histories of many slices as columns. `replays` and `keeps`: whether a recovery replays, and has state."""

    table: Floats
    replays: Floats
    keeps: Floats

    def __getitem__(self, column: str) -> Floats:
        found: Floats = self.table[:, COLUMNS.index(column)]
        return found

    @property
    def factors(self) -> Floats:
        return self.table[:, -len(LADDER) :]


def gather(histories: Sequence[History], guarantees: Sequence[str]) -> Facts:
    cells = chain.from_iterable(history.row for history in histories)
    table = np.fromiter(cells, np.float64, len(histories) * len(COLUMNS)).reshape(len(histories), len(COLUMNS))
    replays = np.array([guarantee in _REPLAYING for guarantee in guarantees], dtype=np.float64)
    keeps = np.array([guarantee != Guarantee.AMNESIA for guarantee in guarantees], dtype=np.float64)
    return Facts(table, replays, keeps)


_REPLAYING = frozenset(guarantee for guarantee in Guarantee if guarantee.replays)


def fixed_steps(facts: Facts) -> dict[str, Floats]:
    """The steps that do not depend on the shipping interval, each as (slices, schemes); unknown is NaN."""
    shape = (len(facts.table), len(LADDER))
    steps = {name: np.zeros(shape) for name in STEPS}
    detect, busy, batch = facts["detect"], facts["contention"], facts["batch"]
    steps["detect"][:, :ACTIVE] = detect[:, None]
    steps["detect"][:, ACTIVE] = detect * facts["source"]
    steps["deploy"][:, PASSIVE] = facts["fresh"] * busy
    steps["deploy"][:, DEPLOYED] = facts["start"] * busy
    # Without any state to keep, nothing is read, whatever reading would take.
    load = np.where(facts.keeps > 0, facts["load"] * busy, 0.0)
    read = np.where(facts.keeps > 0, facts["read"] * busy, 0.0)
    steps["read_checkpoint"][:, COLD] = load
    steps["read_checkpoint"][:, : DEPLOYED + 1] = (load + read)[:, None]
    steps["wire_receive"][:, : COLD + 1] = facts["wire_receive"][:, None]
    steps["wire_send"][:, STANDBY] = facts["wire_send"]
    # An active standby may be in the middle of a batch; of two that publish, nobody waits for the other.
    steps["first_bag"][:, : STANDBY + 1] = (batch * busy)[:, None]
    return steps


def replayed_epochs(facts: Facts, scheme: int, interval: float | Floats) -> Floats:
    """How many epochs are worked off again at the worst moment to fail: since the last shipment, and one in flight."""
    if scheme >= STANDBY:
        return np.zeros(len(facts.table))
    epochs: Floats = interval + facts["lag"] + 1.0
    if scheme == HOT:
        epochs = epochs + facts["refresh_every"] - 1.0
    return np.where(facts.replays > 0, epochs, 0.0)


def replay_s(facts: Facts, scheme: int, interval: float | Floats) -> Floats:
    epochs = replayed_epochs(facts, scheme, interval)
    # An unknown pace does not matter where nothing is replayed.
    return np.where(epochs > 0, epochs * facts["batch"] * facts["contention"], 0.0)


def jump_s(facts: Facts, scheme: int, interval: float | Floats) -> Floats:
    """How much longer it would take if load and state jumped as they did lately, between the decision and a failure."""
    if scheme >= STANDBY:
        return np.zeros(len(facts.table))
    reads, loads = float(scheme <= DEPLOYED), float(scheme <= COLD)
    # What is unknown counts only where it is used.
    state = np.where(loads > 0, facts["load_jump"], 0.0) + np.where(reads > 0, facts["read_jump"], 0.0)
    batches = (replayed_epochs(facts, scheme, interval) + 1.0) * facts["batch_jump"]
    jump: Floats = (np.where(facts.keeps > 0, state, 0.0) + batches) * facts["contention"]
    return jump


@dataclass(frozen=True)
class Estimate:
    """Of one slice: the predicted steps of every scheme, None where too little is known to promise anything."""

    slice: str
    steps: dict[Scheme, dict[str, float] | None]

    def predicted_s(self, scheme: Scheme) -> float | None:
        """Detection included."""
        steps = self.steps[scheme]
        return None if steps is None else sum(steps.values())

    def error(self, scheme: Scheme, actual_s: float, objective_s: float | None = None) -> Error | None:
        """What came of a prediction; None if there was none."""
        steps = self.steps[scheme]
        if steps is None:
            return None
        predicted = sum(steps.values())
        return Error(scheme, predicted - steps["correction"], predicted, actual_s, objective_s)

    def to_data(self) -> dict[str, Any]:
        return {
            scheme.value: None
            if steps is None
            else {"steps": {name: round(value, 3) for name, value in steps.items()}, "s": round(sum(steps.values()), 3)}
            for scheme, steps in self.steps.items()
        }


def estimate(history: History, guarantee: str = Guarantee.PRECISE, ship_every: int | None = None) -> Estimate:
    """The steps of one slice, for reports; the controller uses the same arrays for all slices at once.

    `ship_every` is the interval all schemes would ship with; left out, each ships as `Recovery.interval` says.
    """
    facts = gather([history], [guarantee])
    steps = fixed_steps(facts)
    for number in range(len(LADDER)):
        steps["replay"][:, number] = replay_s(facts, number, ship_every or float(DEFAULT_INTERVALS[number]))
    total = sum(steps.values())
    steps["correction"] = total * (facts.factors - 1.0)
    found: dict[Scheme, dict[str, float] | None] = {}
    for number, scheme in enumerate(LADDER):
        values = {name: float(steps[name][0, number]) for name in STEPS}
        found[scheme] = None if any(math.isnan(value) for value in values.values()) else values
    return Estimate(history.slice, found)
