"""The six schemes are rows of five capabilities; what a secondary does is what its capabilities say."""

from __future__ import annotations

from enum import StrEnum
from functools import cache

from understudy.model.recovery import Scheme
from understudy.model.run import Frozen


class Capability(StrEnum):
    """In the order in which a replica turns them on. Each needs all those before it."""

    DEPLOYED = "deployed"
    SYNCED = "synced"
    RECEIVES = "receives"
    PROCESSES = "processes"
    SENDS = "sends"


class Capabilities(Frozen):
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

    def __eq__(self, other: object) -> bool:
        # Compared in every decision, mostly with itself; the comparison of models is slow.
        return self is other or (isinstance(other, Capabilities) and self.__dict__ == other.__dict__)

    def __hash__(self) -> int:
        return hash((self.deployed, self.synced, self.receives, self.processes, self.sends))

    def turned(self, capability: Capability, on: bool) -> Capabilities:
        return _turned(self, capability, on)

    def has(self, capability: Capability) -> bool:
        return bool(getattr(self, capability.value))

    def __le__(self, other: Capabilities) -> bool:
        """Whether every capability that is on here is on there."""
        return all(other.has(capability) for capability in Capability if self.has(capability))

    def __str__(self) -> str:
        return "+".join(capability for capability in Capability if self.has(capability)) or "nothing"


_KNOWN: dict[Capabilities, Capabilities] = {}


@cache
def _turned(capabilities: Capabilities, capability: Capability, on: bool) -> Capabilities:
    """Always the same value for the same capabilities, so that comparing two is mostly comparing one with itself."""
    found = capabilities.model_copy(update={capability.value: on})
    return _KNOWN.setdefault(found, found)


OFF = Capabilities()
ALL = Capabilities(deployed=True, synced=True, receives=True, processes=True, sends=True)

PAUSED = ALL.turned(Capability.PROCESSES, on=False)
"""A primary that is about to be replaced elsewhere: what it has begun is published, nothing more is begun."""

ROWS: dict[Scheme, Capabilities] = {
    Scheme.NONE: OFF,
    Scheme.PASSIVE_REPLICATION: OFF,
    Scheme.DEPLOYED: Capabilities(deployed=True),
    Scheme.PASSIVE_STANDBY_COLD: Capabilities(deployed=True, synced=True),
    Scheme.PASSIVE_STANDBY_HOT: Capabilities(deployed=True, synced=True, receives=True),
    Scheme.ACTIVE_STANDBY: Capabilities(deployed=True, synced=True, receives=True, processes=True),
    Scheme.ACTIVE_REPLICATION: ALL,
}

_KNOWN.update({row: row for row in ROWS.values()})

LADDER = tuple(scheme for scheme in ROWS if scheme is not Scheme.NONE)
"""From the slowest recovery to the fastest."""


_RANKS = {Scheme.NONE: -1} | {scheme: number for number, scheme in enumerate(LADDER)}


def rank(scheme: Scheme) -> int:
    """How well a scheme protects: a higher rank is back sooner."""
    return _RANKS[scheme]


@cache
def reached(capabilities: Capabilities) -> Scheme:
    """The strongest scheme whose capabilities are all on."""
    return max((scheme for scheme in LADDER if ROWS[scheme] <= capabilities), key=rank)
