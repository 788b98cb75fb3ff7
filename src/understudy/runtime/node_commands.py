"""Nodes that commands start and stop elsewhere: `scaling.start_command`, `stop_command` and `list_command`."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Mapping

from understudy.model.config import ScalingSection

LONGEST_S = 60.0
ABSENT_S = 30.0


class NodeCommands:
    """Each command gets the node's name, the manager's address and the token in its environment.

    A command that fails is told and tried again with the next change of the number of nodes: the run goes on meanwhile.
    """

    def __init__(self, limits: ScalingSection, url: str, token: str, tell: Callable[[str], None]) -> None:
        self._limits, self._url, self._token, self._tell = limits, url, token, tell
        self._started: set[str] = set()
        self._seen: dict[str, float] = {}
        """When a node was last among those of the run."""

    def start(self, name: str) -> None:
        if name not in self.running():
            self._call(self._limits.start_command, name)
        self._started.add(name)

    def look(self, present: set[str], now: float) -> None:
        """Ends what stands behind nodes that had joined and have left.

        A manager that was restarted does not know its nodes for some seconds, so an absence must last.
        """
        self._seen |= dict.fromkeys(self._started & present, now)
        for name in sorted(self._started & self._seen.keys() - present):
            if now - self._seen[name] > ABSENT_S:
                self.stop(name)

    def stop_all(self) -> None:
        for name in sorted(self._started & self.running()):
            self.stop(name)

    def stop(self, name: str) -> None:
        self._started.discard(name)
        self._call(self._limits.stop_command, name)

    def running(self) -> set[str]:
        return set(self._call(self._limits.list_command, "").split())

    def _call(self, command: str, name: str) -> str:
        about: Mapping[str, str] = {"UNDERSTUDY_NODE": name, "UNDERSTUDY_URL": self._url}
        environment = os.environ | about | {"UNDERSTUDY_TOKEN": self._token}
        try:
            found = subprocess.run(
                shlex.split(command), env=environment, capture_output=True, text=True, timeout=LONGEST_S, check=True
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._tell(f"{command} failed{f' for {name}' if name else ''}: {error}")
            return ""
        return found.stdout
