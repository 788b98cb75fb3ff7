"""Child processes: started with their output in a file, ended or frozen with everything below them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

HASHING = {"PYTHONHASHSEED": "0"}
"""Python gives strings other hashes in every process, and so another order to sets of them. Replicas of a slice must
agree on it; PySpark hands the value on to its Python workers."""

KEEPER = Path(__file__).with_name("keeper.py")


@dataclass(frozen=True)
class Child:
    name: str
    process: subprocess.Popen[bytes]
    output: Path

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """As a power cut would: the whole tree at once, no goodbyes."""
        signal_tree(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self, timeout_s: float) -> None:
        """Waits for a child that was asked to stop; kills it if it does not."""
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def tail(self, lines: int = 15) -> str:
        """The last lines of its output."""
        with suppress(FileNotFoundError):
            return "\n".join(self.output.read_text(errors="replace").splitlines()[-lines:])
        return ""


def signal_tree(pid: int, number: signal.Signals) -> None:
    """A process and everything below it."""
    try:
        own = psutil.Process(pid)
        tree = [own, *own.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for process in tree:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def signal_jvm(pid: int, number: signal.Signals) -> None:
    """The JVM of a node alone: the Java process that this process started."""
    with suppress(psutil.NoSuchProcess):
        for process in psutil.Process(pid).children():
            if process.name().startswith("java"):
                process.send_signal(number)


def is_connected_to(pid: int, port: int) -> bool:
    """Whether a process of ours on this machine holds a connection to this port."""
    try:
        connections = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return False
    return any(connection.raddr and connection.raddr.port == port for connection in connections)


def fix_hashing() -> None:
    """Starts this process again, unless its hashes are those of every node: only a new process can have others."""
    if sys.flags.hash_randomization:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | HASHING)


def spawn(name: str, module: str, arguments: list[str], output: Path, extra: Mapping[str, str]) -> Child:
    """Starts a module of ours; it ends when we end, because it holds the other end of its standard input."""
    return _start(name, [sys.executable, "-m", module, *arguments], output, HASHING | dict(extra))


def spawn_foreign(
    name: str, command: Sequence[str], output: Path, extra: Mapping[str, str], user: str | None = None
) -> Child:
    """Starts a program that is not ours, below a keeper that kills it when this process ends.

    The child is the keeper: it exits when the program does, with the same code. `user` runs the program under another
    account, which only root may ask for.
    """
    keeper = [sys.executable, "-I", str(KEEPER), user or ""]
    return _start(name, [*keeper, *command], output, extra)


def _start(name: str, command: list[str], output: Path, extra: Mapping[str, str]) -> Child:
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("ab") as file:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=os.environ | dict(extra),
            start_new_session=True,
        )
    return Child(name, process, output)
