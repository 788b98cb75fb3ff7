"""A node that starts lets those go first who work."""

from __future__ import annotations

import subprocess
import sys

import pytest

from understudy.runtime.priority import AUTOGROUP, BEHIND

SCRIPT = """
import os, sys, threading
from understudy.runtime.priority import AUTOGROUP, step_back

def where():
    # Empty for a process outside any group, as the first one of a machine is.
    group = AUTOGROUP.read_text().split() if AUTOGROUP.exists() else []
    print(os.getpriority(os.PRIO_PROCESS, 0), group[-1] if group else 0)

where()
if sys.argv[3] == "powerless":
    granted = os.setpriority
    def refuse(which, who, nice):
        if nice < os.getpriority(which, who):
            raise PermissionError
        granted(which, who, nice)
    os.setpriority = refuse
ready = step_back(float(sys.argv[1]))
where()
if sys.argv[2] == "ready":
    ready()
else:
    next(thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)).join()
where()
"""


def places(
    longest_s: float, how: str, power: str = "as it is", *, nice: int = 0, session: bool = True
) -> list[tuple[int, int]]:
    """Niceness and share of the session: before, while it starts, and afterwards."""
    command = [sys.executable, "-c", SCRIPT, str(longest_s), how, power]
    found = subprocess.run(
        ["nice", "-n", str(nice), *command], start_new_session=session, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    return [(int(a), int(b)) for a, b in (line.split() for line in found.stdout.splitlines())]


def lowers_niceness() -> bool:
    return subprocess.run(["nice", "-n", "-1", "true"], capture_output=True, check=True).stderr == b""


def sessions_share() -> bool:
    return subprocess.run(["cat", AUTOGROUP], start_new_session=True, capture_output=True, check=False).stdout != b""


def behind(nice: int) -> tuple[int, int]:
    """Only the privileged are given back a niceness; the session's share anybody changes, where there is one."""
    return (BEHIND if lowers_niceness() else nice), (BEHIND if sessions_share() else 0)


@pytest.mark.parametrize("nice", [0, 5])
def test_it_steps_back_while_it_starts_and_returns_to_where_it_was(nice: int) -> None:
    assert places(60, "ready", nice=nice) == [(nice, 0), behind(nice), (nice, 0)]


def test_on_a_full_machine_it_does_not_stand_behind_for_ever() -> None:
    assert places(0.05, "wait") == [(0, 0), behind(0), (0, 0)]


def test_what_could_not_be_taken_back_is_not_done() -> None:
    assert places(60, "ready", "powerless") == [(0, 0), (0, behind(0)[1]), (0, 0)]


def test_the_session_of_a_shell_and_the_group_of_a_script_stay_as_they_are() -> None:
    assert len(set(places(60, "ready", session=False))) == 1
