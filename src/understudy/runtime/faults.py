"""The one fault injector: kills, freezes and thaws processes of this host. The launcher and the API both use it."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from understudy.model.view import NodeState
from understudy.runtime.home import node_directory
from understudy.runtime.processes import is_connected_to, signal_jvm, signal_tree

STARVED_S, FED_S = 0.4, 0.1


def kill(pid: int, *, jvm: bool = False) -> None:
    """As a power cut would: the whole tree at once, or the node's JVM alone."""
    signal_jvm(pid, signal.SIGKILL) if jvm else signal_tree(pid, signal.SIGKILL)


def kill_all(pids: Iterable[int], *, jvm: bool = False) -> None:
    """As the power cut of a whole domain would: first all are stopped, so that none sees another one die."""
    victims = tuple(pids)
    if len(victims) > 1:
        for pid in victims:
            freeze(pid, jvm=jvm)
    for pid in victims:
        kill(pid, jvm=jvm)


def wipe(disk: Path) -> None:
    """A host that dies takes its local disk along."""
    shutil.rmtree(disk, ignore_errors=True)


def freeze(pid: int, *, jvm: bool = False) -> None:
    """Stops the whole tree until it is thawed, or the node's JVM alone."""
    signal_jvm(pid, signal.SIGSTOP) if jvm else signal_tree(pid, signal.SIGSTOP)


def thaw(pid: int) -> None:
    signal_tree(pid, signal.SIGCONT)


@dataclass
class Starving:
    """A process that is frozen most of the time."""

    pid: int
    since: float
    until: float
    frozen: bool = False

    def follow(self, now: float) -> None:
        frozen = now < self.until and (now - self.since) % (STARVED_S + FED_S) < STARVED_S
        if frozen != self.frozen:
            self.frozen = frozen
            freeze(self.pid) if frozen else thaw(self.pid)


class LastingFaults:
    """Faults that end by themselves: frozen processes are thawed on time, starved ones get the CPU now and then.

    Whoever owns it calls `release` often, and `release_all` before it ends.
    """

    def __init__(self) -> None:
        self._thaws: list[tuple[float, int]] = []
        self._starving: list[Starving] = []

    def freeze(self, pid: int, now: float, length_s: float, *, jvm: bool = False) -> None:
        freeze(pid, jvm=jvm)
        self._thaws.append((now + length_s, pid))

    def starve(self, pid: int, now: float, length_s: float) -> None:
        """Lets a process have the CPU for a fifth of the time."""
        self._starving.append(Starving(pid, now, now + length_s))

    def release(self, now: float) -> None:
        """Thaws whatever is due."""
        for moment, pid in [entry for entry in self._thaws if entry[0] <= now]:
            thaw(pid)
            self._thaws.remove((moment, pid))
        for one in self._starving:
            one.follow(now)
        self._starving = [one for one in self._starving if now < one.until]

    def release_all(self) -> None:
        for pid in [*(pid for _, pid in self._thaws), *(one.pid for one in self._starving)]:
            thaw(pid)
        self._thaws, self._starving = [], []

    @property
    def lasting(self) -> bool:
        """Whether some process is still frozen or starved."""
        return bool(self._thaws or self._starving)


class LocalFaults:
    """Faults of nodes by their state. A process id alone proves nothing: a node on another host may have the same."""

    def __init__(self, nodes: Path) -> None:
        self._nodes = nodes

    def reaches(self, node: NodeState, port: int) -> bool:
        """Whether the node is a process of this host that is connected to this port."""
        return node.pid > 0 and is_connected_to(node.pid, port)

    def kill(self, node: NodeState, *, jvm: bool = False) -> None:
        disk = node_directory(self._nodes, node.name)
        kill(node.pid, jvm=jvm)
        if not jvm:
            wipe(disk)

    def freeze(self, node: NodeState, *, jvm: bool = False) -> None:
        freeze(node.pid, jvm=jvm)

    def thaw(self, node: NodeState) -> None:
        thaw(node.pid)
