"""The six schemes are rows of five switches; what a secondary does is what its switches say."""

from __future__ import annotations

from enum import StrEnum
from functools import cache

from understudy.model.recovery import Scheme
from understudy.model.run import Frozen


class Switch(StrEnum):
    """In the order in which they are turned on: each needs those before it, except that nothing sends unprocessed."""

    DEPLOYED = "deployed"
    SYNCED = "synced"
    RECEIVES = "receives"
    PROCESSES = "processes"
    SENDS = "sends"


class Switches(Frozen):
    """What a replica does.

    `deployed`: a warm session knows the operator. `synced`: shipped state is pulled and a query waits behind its gate.
    `receives`: input epochs are fetched ahead and the state is kept in memory. `processes`: the gate is open. `sends`:
    bags are published, instead of being kept in a spool.
    """

    deployed: bool = False
    synced: bool = False
    receives: bool = False
    processes: bool = False
    sends: bool = False

    def turned(self, switch: Switch, on: bool) -> Switches:
        return self.model_copy(update={switch.value: on})

    def has(self, switch: Switch) -> bool:
        return bool(getattr(self, switch.value))

    def __le__(self, other: Switches) -> bool:
        """Whether every switch that is on here is on there."""
        return all(other.has(switch) for switch in Switch if self.has(switch))

    def __str__(self) -> str:
        return "+".join(switch for switch in Switch if self.has(switch)) or "nothing"


OFF = Switches()
ALL = Switches(deployed=True, synced=True, receives=True, processes=True, sends=True)

ROWS: dict[Scheme, Switches] = {
    Scheme.NONE: OFF,
    Scheme.PASSIVE_REPLICATION: OFF,
    Scheme.DEPLOYED: Switches(deployed=True),
    Scheme.PASSIVE_STANDBY_COLD: Switches(deployed=True, synced=True),
    Scheme.PASSIVE_STANDBY_HOT: Switches(deployed=True, synced=True, receives=True),
    Scheme.ACTIVE_STANDBY: Switches(deployed=True, synced=True, receives=True, processes=True),
    Scheme.ACTIVE_REPLICATION: ALL,
}

LADDER = tuple(scheme for scheme in ROWS if scheme is not Scheme.NONE)
"""From the slowest recovery to the fastest."""


def rank(scheme: Scheme) -> int:
    """How well a scheme protects: a higher rank is back sooner."""
    return -1 if scheme is Scheme.NONE else LADDER.index(scheme)


@cache
def reached(switches: Switches) -> Scheme:
    """The strongest scheme whose switches are all on."""
    return max((scheme for scheme in LADDER if ROWS[scheme] <= switches), key=rank)
