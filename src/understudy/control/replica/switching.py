"""Switching a scheme: the difference of two rows of capabilities, one capability at a time.

What is missing is turned on from the bottom, then what is too much is turned off from the top. Every state in between
has all capabilities of the weaker row, so a slice is never less protected than the weaker of the two schemes. Each step
is safe to repeat, and a switch that is interrupted goes on from whatever is on by then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from understudy.model.capabilities import Capabilities, Capability


@dataclass(frozen=True)
class Step:
    capability: Capability
    on: bool

    def __str__(self) -> str:
        return f"{self.capability} {'on' if self.on else 'off'}"


def steps(now: Capabilities, target: Capabilities) -> Iterator[Step]:
    for capability in Capability:
        if target.has(capability) and not now.has(capability):
            yield Step(capability, True)
    for capability in reversed(Capability):
        if now.has(capability) and not target.has(capability):
            yield Step(capability, False)


@cache
def next_step(now: Capabilities, target: Capabilities) -> Step | None:
    """The first step from one set of capabilities to another; None if they are the same. Asked in every decision."""
    return next(steps(now, target), None)
