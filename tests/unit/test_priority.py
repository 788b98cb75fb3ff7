"""A node that starts lets those go first who work."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from understudy.runtime.priority import AUTOGROUP, BEHIND

SCRIPT = """
import os, sys, threading
from understudy.runtime.priority import AUTOGROUP, step_back

def where():
    print(os.getpriority(os.PRIO_PROCESS, 0), AUTOGROUP.read_text().split()[-1] if AUTOGROUP.exists() else 0)

where()
ready = step_back(float(sys.argv[1]))
where()
if sys.argv[2] == "ready":
    ready()
else:
    next(thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)).join()
where()
"""


def places(longest_s: float, how: str, *, nice: int = 0, session: bool = True) -> list[tuple[int, int]]:
    """Niceness and share of the session: before, while it starts, and afterwards."""
    command = [sys.executable, "-c", SCRIPT, str(longest_s), how]
    found = subprocess.run(
        ["nice", "-n", str(nice), *command], start_new_session=session, capture_output=True, text=True, check=True
    )
    return [(int(a), int(b)) for a, b in (line.split() for line in found.stdout.splitlines())]


def behind(nice: int) -> tuple[int, int]:
    """Only the privileged are given back a niceness; the session's share anybody changes, where there is one."""
    return (BEHIND if os.geteuid() == 0 else nice), (BEHIND if AUTOGROUP.exists() else 0)


@pytest.mark.parametrize("nice", [0, 5])
def test_it_steps_back_while_it_starts_and_returns_to_where_it_was(nice: int) -> None:
    assert places(60, "ready", nice=nice) == [(nice, 0), behind(nice), (nice, 0)]


def test_on_a_full_machine_it_does_not_stand_behind_for_ever() -> None:
    assert places(0.05, "wait") == [(0, 0), behind(0), (0, 0)]


def test_the_session_of_a_shell_keeps_its_share() -> None:
    shares = [share for _, share in places(60, "ready", session=False)]
    assert len(set(shares)) == 1
