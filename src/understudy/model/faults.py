"""Faults are data: a scenario reads top to bottom."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from understudy.errors import InvalidInput
from understudy.model.recovery import Scheme, member

MANAGER = "manager"

_WHEN = r"@(?:epoch(?P<epoch>\d+)|(?P<time>\d+(?:\.\d+)?)s)"
_SPEC = re.compile(
    rf"(?P<kind>kill|freeze|starve):(?P<target>[A-Za-z][\w-]*)(?P<jvm>/jvm)?{_WHEN}(?:\+(?P<length>\d+(?:\.\d+)?)s)?"
)
_SWITCH = re.compile(rf"(?P<kind>switch):(?P<target>[A-Za-z][\w-]*\[\d+\])=(?P<scheme>\w+){_WHEN}(?P<length>)(?P<jvm>)")


class FaultKind(StrEnum):
    KILL = "kill"
    FREEZE = "freeze"
    STARVE = "starve"
    SWITCH = "switch"


LASTING = (FaultKind.FREEZE, FaultKind.STARVE)


@dataclass(frozen=True)
class Fault:
    """`kill:node-2@epoch12` or `freeze:node-1@8s+3s`: what, whom, when, and for how long. A starved node gets the CPU
    for a fifth of the time: `starve:node-1@8s+3s`. `kill:node-2/jvm@10s` and `freeze:node-2/jvm@8s+3s` hit the JVM of a
    node alone: the Python process beside it goes on.

    A switch is no fault, but belongs to the same script: `switch:counts[0]=active_standby@20s`.
    """

    spec: str
    kind: FaultKind
    target: str
    at_s: float | None
    at_epoch: int | None
    length_s: float
    scheme: Scheme | None = None
    jvm: bool = False

    def due(self, elapsed_s: float, epoch: int) -> bool:
        """Whether the moment has come: so long after the start, or once the target has finished the epoch."""
        return elapsed_s >= self.at_s if self.at_s is not None else epoch >= (self.at_epoch or 0)

    @classmethod
    def parse(cls, spec: str) -> Fault:
        match = _SPEC.fullmatch(spec) or _SWITCH.fullmatch(spec)
        if match is None or (match["kind"] in LASTING) != bool(match["length"]) or not _has_jvm(match):
            raise InvalidInput(
                f"--fault {spec}",
                why="that is not a fault we know how to cause",
                fix="write kill:NODE@10s, kill:NODE@epoch12, kill:manager@5s, freeze:NODE@8s+3s, kill:NODE/jvm@10s, "
                "freeze:NODE/jvm@8s+3s, starve:NODE@8s+3s or switch:SLICE=SCHEME@20s",
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
        )


def _has_jvm(match: re.Match[str]) -> bool:
    """Whether the target has the part that is meant: the manager has no JVM, and a JVM is not starved alone."""
    return not match["jvm"] or (match["target"] != MANAGER and match["kind"] != FaultKind.STARVE)
