"""The one fault injector: kills, freezes and thaws processes of this host. The launcher and the API both use it."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from understudy.model.view import NodeState
from understudy.runtime.home import node_directory
from understudy.runtime.processes import is_connected_to, signal_jvm, signal_tree


def kill(pid: int, *, jvm: bool = False) -> None:
    """As a power cut would: the whole tree at once, or the node's JVM alone."""
    signal_jvm(pid, signal.SIGKILL) if jvm else signal_tree(pid, signal.SIGKILL)


def wipe(disk: Path) -> None:
    """A host that dies takes its local disk along."""
    shutil.rmtree(disk, ignore_errors=True)


def freeze(pid: int, *, jvm: bool = False) -> None:
    """Stops the whole tree until it is thawed, or the node's JVM alone."""
    signal_jvm(pid, signal.SIGSTOP) if jvm else signal_tree(pid, signal.SIGSTOP)


def thaw(pid: int) -> None:
    signal_tree(pid, signal.SIGCONT)


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
