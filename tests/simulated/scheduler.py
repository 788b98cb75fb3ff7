"""Time as a number, and processes whose steps happen one after the other."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

STEP_S = 0.001
"""What every step takes at least: nobody does anything in no time."""


class Process:
    """Something that can be killed and frozen. What was due while it was frozen happens when it thaws."""

    def __init__(self) -> None:
        self.alive = True
        self.frozen = False
        self.held: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def kill(self) -> None:
        self.alive = False
        self.held.clear()

    def freeze(self) -> None:
        self.frozen = True


class Scheduler:
    def __init__(self, start: float = 1000.0) -> None:
        self.now = start
        self._due: list[tuple[float, int, Process | None, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        self.current: Actor | None = None
        """Whose turn it is."""

    def after(self, seconds: float, act: Callable[..., None], process: Process | None = None, *args: Any) -> None:
        """Calls `act` with these arguments, so many seconds from now, unless its process is killed before."""
        self._count = count = self._count + 1
        heappush(self._due, (self.now + seconds, count, process, act, args))

    def thaw(self, process: Process) -> None:
        process.frozen = False
        held, process.held = process.held, []
        for act, args in held:
            self.after(STEP_S, act, process, *args)

    def run_until(self, time: float) -> None:
        due = self._due
        while due and due[0][0] <= time:
            when, _, process, act, args = heappop(due)
            if when > self.now:
                self.now = when
            if process is None or (process.alive and not process.frozen):
                act(*args)
            elif process.alive:
                process.held.append((act, args))
        self.now = max(self.now, time)


class SimSignal:
    """Lets an actor that waits go on at once."""

    def __init__(self) -> None:
        self.actor: Actor | None = None
        self._is_set = False

    def set(self) -> None:
        self._is_set = True
        if self.actor is not None:
            self.actor.wake()

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        return self._is_set


class Actor:
    """Calls `turn` again and again, after the seconds it returned or when it is woken, until it returns None."""

    def __init__(
        self, scheduler: Scheduler, process: Process, turn: Callable[[], float | None], signal: SimSignal | None = None
    ) -> None:
        self._scheduler, self._process, self._turn, self._signal = scheduler, process, turn, signal
        self._version = 0
        self._waits = False
        if signal is not None:
            signal.actor = self
        self._schedule(STEP_S)

    def _schedule(self, seconds: float) -> None:
        self._version = version = self._version + 1
        self._waits = waits = seconds > STEP_S
        self._scheduler.after(seconds if waits else STEP_S, self._act, self._process, version)

    def wake(self) -> None:
        if self._waits:
            self._schedule(STEP_S)

    def _act(self, version: int) -> None:
        if version != self._version:
            return
        if self._signal is not None:
            self._signal.clear()
        self._scheduler.current = self
        seconds = self._turn()
        self._scheduler.current = None
        if seconds is not None:
            self._schedule(seconds)
