"""A program that is not ours ends with the process that started it, however that one ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from understudy.runtime.processes import spawn_foreign

PATIENCE_S = 120.0

# Starts a shell that has a child of its own, tells both ids, and waits to be killed.
PARENT = """
import sys, time
from pathlib import Path
import psutil
from understudy.runtime.processes import spawn_foreign
child = spawn_foreign("shell", ["sh", "-c", "sleep 600 & wait"], Path(sys.argv[1]), {})
while len(found := psutil.Process(child.process.pid).children(recursive=True)) < 2:
    time.sleep(0.01)
if sys.argv[2] == "frozen":
    for process in found:
        process.suspend()
print(*[process.pid for process in found], flush=True)
time.sleep(600)
"""


def _await_end(processes: list[psutil.Process]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes):
        assert time.monotonic() < deadline, "they outlived the process that started them"
        time.sleep(0.01)


@pytest.mark.parametrize("state", ["running", "frozen"])
def test_a_killed_parent_takes_the_whole_tree_along(tmp_path: Path, state: str) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path / "output"), state]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        tree = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        assert len(tree) == 2
        parent.send_signal(signal.SIGKILL)
    _await_end(tree)


def test_the_keeper_passes_the_exit_code_and_the_output_on(tmp_path: Path) -> None:
    child = spawn_foreign("shell", ["sh", "-c", "echo $WORD; exit 7"], tmp_path / "output", {"WORD": "hello"})
    assert child.process.wait(PATIENCE_S) == 7
    assert child.tail() == "hello"
