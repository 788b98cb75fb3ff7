"""How a missed heartbeat is answered (seed 001): patiently, or at once and reversibly.

A conservative slice waits until its primary's node counts as dead, then its secondary is promoted. A speculative one
wakes its suspended secondary at the first miss. Should the primary answer again, it takes over the newer state and the
secondary sleeps; should it stay silent, the secondary is promoted for good. Waking for nothing costs little and loses
nothing, because publishing is put-if-absent.

`react` is one step: signs and what was noticed before go in, actions and what to remember come out. Wake and RollBack
are said again until the secondary does as it was told; Promote is said once for every failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from understudy.model.snapshot import NodeView


class Reaction(StrEnum):
    CONSERVATIVE = "conservative"
    SPECULATIVE = "speculative"


class Secondary(StrEnum):
    """What stands by. `working`: it processes anyway, so there is nothing to wake."""

    ABSENT = "absent"
    SUSPENDED = "suspended"
    AWAKE = "awake"
    WORKING = "working"


@dataclass(frozen=True)
class NodeSign:
    """What is heard of a node: heartbeats missed in a row, and whether its connection stands."""

    name: str
    misses: int = 0
    connected: bool = True

    @property
    def answers(self) -> bool:
        return self.connected and self.misses == 0


def sign_of(node: NodeView, heartbeat_s: float, grace: float = 0.5) -> NodeSign:
    """A heartbeat counts as missed when it is late by `grace` of its interval: no network is perfectly regular."""
    late = node.silent_s / heartbeat_s - grace
    return NodeSign(node.name, max(0, int(late)), node.connected)


@dataclass(frozen=True)
class SliceSign:
    """`node` hosts the primary, which has this `generation`; `standby` hosts the secondary. The epochs are the newest
    each has finished."""

    slice: str
    node: str
    generation: int
    reaction: Reaction = Reaction.CONSERVATIVE
    secondary: Secondary = Secondary.ABSENT
    standby: str | None = None
    epoch: int = -1
    standby_epoch: int = -1


@dataclass(frozen=True)
class Patience:
    """Misses until something happens. An open connection gets more: a starting JVM alone can be silent for a second."""

    wake: int = 1
    promote: int = 30
    promote_disconnected: int = 3

    def gone(self, node: NodeSign) -> bool:
        return node.misses >= (self.promote if node.connected else self.promote_disconnected)

    def suspicious(self, node: NodeSign) -> bool:
        return not node.connected or node.misses >= self.wake


@dataclass(frozen=True)
class Wake:
    slice: str
    standby: str
    reason: str


@dataclass(frozen=True)
class RollBack:
    """The primary goes on. `read_back`: the epoch whose state it reads from its secondary; None if it is not behind."""

    slice: str
    node: str
    standby: str
    read_back: int | None
    reason: str


@dataclass(frozen=True)
class Promote:
    """The primary is given up. `to` hosts the secondary that takes over; None if a replica has to be started."""

    slice: str
    generation: int
    to: str | None
    reason: str


@dataclass(frozen=True)
class Ignore:
    slice: str
    reason: str


Action = Wake | RollBack | Promote | Ignore


class Phase(StrEnum):
    CALM = "calm"
    AWAKE = "awake"
    PROMOTED = "promoted"


@dataclass(frozen=True)
class Watch:
    phase: Phase = Phase.CALM
    generation: int = -1
    since: float = 0.0


@dataclass(frozen=True)
class Counts:
    """`false_alarms`: the primary came back without being behind, so waking its secondary had gained nothing."""

    wakes: int = 0
    roll_backs: int = 0
    false_alarms: int = 0
    promotions: int = 0
    awake_s: float = 0.0


@dataclass(frozen=True)
class Vigil:
    """All that is kept between two steps."""

    watches: Mapping[str, Watch] = field(default_factory=lambda: MappingProxyType({}))
    counts: Counts = Counts()


@dataclass(frozen=True)
class Response:
    actions: tuple[Action, ...]
    vigil: Vigil


def react(
    nodes: Sequence[NodeSign], slices: Sequence[SliceSign], vigil: Vigil, patience: Patience, now: float
) -> Response:
    """A node that is not in the list is gone."""
    heard = {node.name: node for node in nodes}
    counts = vigil.counts
    actions: list[Action] = []
    watches: dict[str, Watch] = {}
    for sign in slices:
        before = vigil.watches.get(sign.slice, Watch())
        if before.generation != sign.generation:
            # Another replica leads now; whatever happened to the one before is over.
            phase = Phase.AWAKE if sign.secondary is Secondary.AWAKE else Phase.CALM
            before = Watch(phase, sign.generation, now)
        node = heard.get(sign.node, NodeSign(sign.node, patience.promote, connected=False))
        action, phase = _answer(sign, before.phase, node, heard, patience)
        if action is not None:
            actions.append(action)
        counts = _count(counts, action, before, phase, now)
        watches[sign.slice] = before if phase is before.phase else Watch(phase, sign.generation, now)
    return Response(tuple(actions), Vigil(MappingProxyType(watches), counts))


def _answer(
    sign: SliceSign, phase: Phase, node: NodeSign, heard: Mapping[str, NodeSign], patience: Patience
) -> tuple[Action | None, Phase]:
    if phase is Phase.PROMOTED:
        why = "has answered again, too late" if node.answers else "is given up already"
        return Ignore(sign.slice, f"{sign.node} {why}"), Phase.PROMOTED
    able = _standby(sign, heard, patience)
    if node.answers:
        return _calm(sign, phase)
    if patience.gone(node):
        return Promote(sign.slice, sign.generation, able, f"{sign.node} {_silence(node)}"), Phase.PROMOTED
    if not patience.suspicious(node):
        return None, phase
    return _suspect(sign, phase, node, able)


def _calm(sign: SliceSign, phase: Phase) -> tuple[Action | None, Phase]:
    """The primary answers: whoever is awake beside it sleeps again."""
    if phase is not Phase.AWAKE and sign.secondary is not Secondary.AWAKE:
        return None, Phase.CALM
    behind = sign.standby_epoch > sign.epoch
    reason = f"{sign.node} answers again" + (f", {sign.standby_epoch - sign.epoch} epochs behind" if behind else "")
    back = RollBack(sign.slice, sign.node, sign.standby or "", sign.standby_epoch if behind else None, reason)
    return back, Phase.CALM


def _suspect(sign: SliceSign, phase: Phase, node: NodeSign, able: str | None) -> tuple[Action | None, Phase]:
    if phase is Phase.AWAKE and sign.secondary is Secondary.AWAKE:
        return None, Phase.AWAKE
    if sign.reaction is Reaction.CONSERVATIVE:
        return Ignore(sign.slice, f"{sign.node} {_silence(node)}, which may mean nothing yet"), phase
    if sign.secondary is Secondary.WORKING:
        return Ignore(sign.slice, f"{sign.node} {_silence(node)}, and its secondary works anyway"), phase
    if able is None:
        return Ignore(sign.slice, f"{sign.node} {_silence(node)}, and there is nobody to wake"), phase
    return Wake(sign.slice, able, f"{sign.node} {_silence(node)}"), Phase.AWAKE


def _standby(sign: SliceSign, heard: Mapping[str, NodeSign], patience: Patience) -> str | None:
    """The node of the secondary, if it is there and not silent itself."""
    node = heard.get(sign.standby or "")
    if sign.secondary is Secondary.ABSENT or node is None or patience.suspicious(node):
        return None
    return node.name


def _silence(node: NodeSign) -> str:
    missed = f"missed {node.misses} heartbeat{'s' * (node.misses != 1)}"
    return missed if node.connected else f"is disconnected and {missed}"


def _count(counts: Counts, action: Action | None, before: Watch, phase: Phase, now: float) -> Counts:
    if phase is before.phase:
        return counts
    if before.phase is Phase.AWAKE:
        counts = replace(counts, awake_s=counts.awake_s + now - before.since)
    if isinstance(action, Wake):
        return replace(counts, wakes=counts.wakes + 1)
    if isinstance(action, RollBack):
        false = counts.false_alarms + (action.read_back is None)
        return replace(counts, roll_backs=counts.roll_backs + 1, false_alarms=false)
    return replace(counts, promotions=counts.promotions + isinstance(action, Promote))
