"""Scripts of what happens in a run: each step waits for how things stand, then does something."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from understudy.model.view import RunState, SliceState
from understudy.runtime.launcher import Launcher

Condition = Callable[[RunState], bool]
Script = Iterator[Condition]


class Driver:
    """Runs a generator that yields the conditions it waits for; `state` is how things stand now."""

    def __init__(self, script: Callable[[Driver], Script]) -> None:
        self._script = script(self)
        self._waits_for: Condition | None = None
        self.done = False

    def __call__(self, state: RunState, launcher: Launcher) -> None:
        self.state, self.launcher = state, launcher
        if self.done or (self._waits_for is not None and not self._waits_for(state)):
            return
        self._waits_for = next(self._script, None)
        if self._waits_for is None:
            self.done = launcher.finish()

    def switch_all(self, scheme: str) -> None:
        for one in operators(self.state):
            self.launcher.inject(f"switch:{one.slice}={scheme}")


def operators(state: RunState) -> list[SliceState]:
    return [one for one in state.slices if one.kind == "operator"]


def working(nodes: int) -> Condition:
    """Every operator works, however it is protected at the moment, and there are enough nodes to lose one."""

    def check(state: RunState) -> bool:
        ready = [node for node in state.nodes if node.connected and node.ready]
        return len(ready) >= nodes and bool(operators(state)) and all(o.state == "running" for o in operators(state))

    return check


def healthy(nodes: int) -> Condition:
    """Every operator works, by itself, and is protected as it should be, and there are enough nodes to lose one."""

    works = working(nodes)

    def check(state: RunState) -> bool:
        return works(state) and all(one.protection == one.scheme and not one.standing_in for one in operators(state))

    return check


def protected_by(scheme: str, nodes: int = 2) -> Condition:
    well = healthy(nodes)
    return lambda state: well(state) and all(one.scheme == scheme for one in operators(state))


def busiest(state: RunState) -> str:
    """The node with the most primaries of operators."""
    hosts = [one.primary for one in operators(state)]
    return max(sorted(set(hosts)), key=hosts.count)


def gone(node: str) -> Condition:
    return lambda state: all(other.name != node for other in state.nodes)


def progressed(state: RunState, epochs: int) -> Condition:
    """So many epochs more than now are delivered."""
    goal = state.epoch + epochs
    return lambda later: later.epoch >= goal


def after(state: RunState, seconds: float) -> Condition:
    """So much of the run's time has passed: for what may never happen on a busy machine."""
    goal = state.elapsed_s + seconds
    return lambda later: later.elapsed_s >= goal


def either(one: Condition, other: Condition) -> Condition:
    return lambda state: one(state) or other(state)


def both(one: Condition, other: Condition) -> Condition:
    """At the same moment: on a busy machine a copy that works may fall behind again, and then protects less."""
    return lambda state: one(state) and other(state)
