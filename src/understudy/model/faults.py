"""Faults are data: a scenario reads top to bottom."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from understudy.errors import InvalidInput
from understudy.model.recovery import Scheme, member

MANAGER = "manager"


def domain_name(number: int) -> str:
    """What the launcher calls a failure domain, counted from 0."""
    return f"domain-{number + 1}"


_WHEN = r"@(?:epoch(?P<epoch>\d+)|(?P<time>\d+(?:\.\d+)?)s)"
_SPEC = re.compile(
    rf"(?P<kind>kill|vanish|freeze|starve):(?P<target>[A-Za-z][\w-]*)(?P<jvm>/jvm)?{_WHEN}(?:\+(?P<length>\d+(?:\.\d+)?)s)?"
)
_MOVE = re.compile(
    rf"(?P<kind>move):(?P<target>[A-Za-z][\w-]*\[\d+\])=(?P<node>[A-Za-z][\w-]*){_WHEN}(?P<length>)(?P<jvm>)"
)
_SWITCH = re.compile(rf"(?P<kind>switch):(?P<target>[A-Za-z][\w-]*\[\d+\])=(?P<scheme>\w+){_WHEN}(?P<length>)(?P<jvm>)")


class FaultKind(StrEnum):
    KILL = "kill"
    VANISH = "vanish"
    FREEZE = "freeze"
    STARVE = "starve"
    SWITCH = "switch"
    MOVE = "move"


LASTING = (FaultKind.FREEZE, FaultKind.STARVE)


@dataclass(frozen=True)
class Fault:
    """`kill:node-2@epoch12` or `freeze:node-1@8s+3s`: what, whom, when, and for how long. A starved node gets the CPU
    for a fifth of the time: `starve:node-1@8s+3s`. `kill:node-2/jvm@10s` and `freeze:node-2/jvm@8s+3s` hit the JVM of a
    node alone: the Python process beside it goes on. A host that vanishes, `vanish:node-2@10s`, is never heard again:
    no connection is closed, and its disk is gone. A domain is a target too: `kill:domain-1@20s` kills all its nodes.

    A switch and a move are no faults, but belong to the same script: `switch:counts[0]=active_standby@20s`,
    `move:counts[0]=node-3@20s`.
    """

    spec: str
    kind: FaultKind
    target: str
    at_s: float | None
    at_epoch: int | None
    length_s: float
    scheme: Scheme | None = None
    jvm: bool = False
    node: str = ""
    """Where a move goes."""

    def due(self, elapsed_s: float, epoch: int) -> bool:
        """Whether the moment has come: so long after the start, or once the target has finished the epoch."""
        return elapsed_s >= self.at_s if self.at_s is not None else epoch >= (self.at_epoch or 0)

    @classmethod
    def parse(cls, spec: str) -> Fault:
        match = _SPEC.fullmatch(spec) or _SWITCH.fullmatch(spec) or _MOVE.fullmatch(spec)
        if match is None or (match["kind"] in LASTING) != bool(match["length"]) or not _has_jvm(match):
            raise InvalidInput(
                f"--fault {spec}",
                why="that is not a fault we know how to cause",
                fix="write kill:NODE@10s, kill:NODE@epoch12, kill:manager@5s, kill:DOMAIN@20s, vanish:NODE@10s, "
                "freeze:NODE@8s+3s, kill:NODE/jvm@10s, freeze:NODE/jvm@8s+3s, starve:NODE@8s+3s, "
                "switch:SLICE=SCHEME@20s or move:SLICE=NODE@20s",
            )
        kind = FaultKind(match["kind"])
        return cls(
            spec=spec,
            kind=kind,
            target=match["target"],
            at_s=float(match["time"]) if match["time"] else None,
            at_epoch=int(match["epoch"]) if match["epoch"] else None,
            length_s=float(match["length"] or 0),
            scheme=Scheme(member(Scheme, match["scheme"], "scheme")) if kind is FaultKind.SWITCH else None,
            jvm=bool(match["jvm"]),
            node=match["node"] if kind is FaultKind.MOVE else "",
        )


def _has_jvm(match: re.Match[str]) -> bool:
    """Whether the target has the part that is meant: the manager has no JVM, and a JVM alone only dies or freezes."""
    alone = (FaultKind.KILL, FaultKind.FREEZE)
    return not match["jvm"] or (match["target"] != MANAGER and match["kind"] in alone)
