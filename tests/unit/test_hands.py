"""What kill and freeze do to real processes, and to which."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from understudy.model.view import NodeState
from understudy.runtime.faults import LocalFaults

# A node as far as signals go: it holds a connection, and has a child, as a node has its JVM.
PROGRAM = """
import socket, subprocess, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
connection.sendall(str(child.pid).encode() + b"\\n")
connection.recv(1)
"""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.fixture
def node(listener: socket.socket) -> Iterator[tuple[NodeState, psutil.Process]]:
    """The process, and its child."""
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(listener.getsockname()[1])])
    connection, _ = listener.accept()
    child = psutil.Process(int(connection.makefile().readline()))
    state = {"connected": True, "ready": True, "domain": "", "cpu_s": 0.0, "memory_bytes": 0, "replicas": ()}
    yield NodeState(name="node-1", pid=process.pid, **state), child  # type: ignore[arg-type]
    connection.close()
    process.kill()
    process.wait()


def wait_for(process: psutil.Process, *states: str) -> None:
    while process.status() not in states:
        pass


def test_a_process_is_ours_only_if_it_is_connected_to_us(
    node: tuple[NodeState, psutil.Process], listener: socket.socket, tmp_path: Path
) -> None:
    hands, port = LocalFaults(tmp_path), listener.getsockname()[1]
    assert hands.reaches(node[0], port)
    assert not hands.reaches(node[0], port + 1)
    assert not hands.reaches(node[0].model_copy(update={"pid": node[1].pid}), port), "its child holds no connection"
    assert not hands.reaches(node[0].model_copy(update={"pid": 0}), port)
    assert not hands.reaches(node[0].model_copy(update={"pid": 2**22 + 1}), port), "there is no such process"


def test_freezing_stops_the_whole_tree_until_it_thaws(node: tuple[NodeState, psutil.Process], tmp_path: Path) -> None:
    state, child = node
    LocalFaults(tmp_path).freeze(state)
    for process in (psutil.Process(state.pid), child):
        wait_for(process, psutil.STATUS_STOPPED)
    LocalFaults(tmp_path).thaw(state)
    for process in (psutil.Process(state.pid), child):
        wait_for(process, psutil.STATUS_SLEEPING, psutil.STATUS_RUNNING)


def test_killing_takes_the_tree_and_the_local_disk(node: tuple[NodeState, psutil.Process], tmp_path: Path) -> None:
    state, child = node
    (tmp_path / "node-1" / "checkpoint").mkdir(parents=True)
    (tmp_path / "node-2").mkdir()
    LocalFaults(tmp_path).kill(state)
    psutil.wait_procs([child], timeout=120)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    assert [path.name for path in tmp_path.iterdir()] == ["node-2"]
