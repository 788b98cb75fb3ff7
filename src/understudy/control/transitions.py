"""A transition between two schemes is the difference of their rows, one switch at a time.

What is missing is turned on from the bottom, then what is too much is turned off from the top. Every state in between
has all switches of the weaker row, so a slice is never less protected than the weaker of the two schemes. Each step is
safe to repeat, and a transition that is interrupted goes on from whatever is on by then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from understudy.model.switches import Switch, Switches


@dataclass(frozen=True)
class Step:
    switch: Switch
    on: bool

    def __str__(self) -> str:
        return f"{self.switch} {'on' if self.on else 'off'}"


def steps(now: Switches, target: Switches) -> Iterator[Step]:
    for switch in Switch:
        if target.has(switch) and not now.has(switch):
            yield Step(switch, True)
    for switch in reversed(Switch):
        if now.has(switch) and not target.has(switch):
            yield Step(switch, False)


def next_step(now: Switches, target: Switches) -> Step | None:
    return next(steps(now, target), None)
