"""Faults are data: a scenario reads top to bottom."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from understudy.errors import InvalidInput

MANAGER = "manager"

_SPEC = re.compile(
    r"(?P<kind>kill|freeze):(?P<target>[A-Za-z][\w-]*)@(?:epoch(?P<epoch>\d+)|(?P<time>\d+(?:\.\d+)?)s)"
    r"(?:\+(?P<length>\d+(?:\.\d+)?)s)?"
)


class FaultKind(StrEnum):
    KILL = "kill"
    FREEZE = "freeze"


@dataclass(frozen=True)
class Fault:
    """`kill:node-2@epoch12` or `freeze:node-1@8s+3s`: what, whom, when, and for how long."""

    spec: str
    kind: FaultKind
    target: str
    at_s: float | None
    at_epoch: int | None
    length_s: float

    def due(self, elapsed_s: float, epoch: int) -> bool:
        """Whether the moment has come: so long after the start, or once the target has finished the epoch."""
        return elapsed_s >= self.at_s if self.at_s is not None else epoch >= (self.at_epoch or 0)

    @classmethod
    def parse(cls, spec: str) -> Fault:
        match = _SPEC.fullmatch(spec)
        if match is None or (match["kind"] == FaultKind.FREEZE) != (match["length"] is not None):
            raise InvalidInput(
                f"--fault {spec}",
                why="that is not a fault we know how to cause",
                fix="write kill:NODE@10s, kill:NODE@epoch12, kill:manager@5s or freeze:NODE@8s+3s",
            )
        return cls(
            spec=spec,
            kind=FaultKind(match["kind"]),
            target=match["target"],
            at_s=float(match["time"]) if match["time"] else None,
            at_epoch=int(match["epoch"]) if match["epoch"] else None,
            length_s=float(match["length"] or 0),
        )
