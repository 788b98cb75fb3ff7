"""What all services have in common: started on a free port, awaited by protocol, killed, frozen, restarted, ended."""

from __future__ import annotations

import signal
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

import psutil

from understudy.errors import Unavailable
from understudy.runtime.processes import Child, spawn_foreign

# Only there to end a test that hangs: on a machine with fifty processes for each core Kafka took 40 s.
READY_WITHIN_S = 180.0
END_WITHIN_S = 20.0
POLL_S = 0.01


class Service(ABC):
    """A real server for tests, with its data in a directory of the caller's.

    `start` returns the address that clients connect to. `stop`, `kill` and `freeze` keep the data, and `restart` brings
    the service back on the same port. As a context manager a service keeps its data in a temporary directory. The life
    of a server has many steps, and each is a short method that a subclass may replace.

    Attributes
    ----------
    name : str
        Name of the service in the registry.
    address : str
        What clients connect to; empty before the first start.

    Examples
    --------
    >>> with ZooKeeper() as zookeeper:  # doctest: +SKIP
    ...     client = KazooClient(zookeeper.address)
    """

    name: ClassVar[str]
    address: str = ""
    _temporary: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    @abstractmethod
    def check(cls) -> None:
        """Checks that the service can be started on this machine as it is.

        Raises
        ------
        Unavailable
            If something is not installed; the error says what, and how to install it.
        """

    @classmethod
    def install(cls) -> str:
        """Fetches what the project can fetch.

        Returns
        -------
        str
            One line that says what is installed.

        Raises
        ------
        Unavailable
            If something else is missing.
        """
        cls.check()
        return "installed"

    @abstractmethod
    def start(self, directory: Path) -> str:
        """Starts on free ports with empty data and waits until the service responds to its protocol.

        Parameters
        ----------
        directory : Path
            Where the service keeps its data and its output; created if it does not exist.

        Returns
        -------
        str
            The address.

        Raises
        ------
        Unavailable
            If the service is not installed, ends while it starts, or does not respond in time.
        """

    @abstractmethod
    def stop(self) -> None:
        """Ends it with its stop signal and waits; kills it if it has not ended after 20 s."""

    @abstractmethod
    def kill(self) -> None:
        """Kills all its processes at once with SIGKILL; returns when they are gone."""

    @abstractmethod
    def freeze(self) -> None:
        """Stops all its processes with SIGSTOP; connections stay open. Returns when all have stopped."""

    @abstractmethod
    def thaw(self) -> None:
        """Continues all its processes after `freeze`."""

    @abstractmethod
    def restart(self) -> str:
        """Ends it if it runs, starts it again on the same port with the same data, and waits until it responds.

        Returns
        -------
        str
            The address, the same as before.
        """

    @abstractmethod
    def logs(self, lines: int = 40) -> str:
        """Returns the last lines the service wrote.

        Parameters
        ----------
        lines : int, optional
            How many. Default: 40.

        Returns
        -------
        str
        """

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether its processes run; a frozen service is alive."""

    @property
    @abstractmethod
    def processes(self) -> Sequence[psutil.Process]:
        """Its processes, without the keeper that watches over them."""

    def close(self) -> None:
        """Kills it and removes what it keeps outside its directory, which belongs to the caller."""
        self.kill()

    def memory_mb(self) -> float:
        """Returns the resident memory of all its processes in MB; shared pages count once for each process.

        Returns
        -------
        float
        """
        return sum(map(_resident, self.processes)) / 1e6

    def __enter__(self) -> Self:
        self._temporary = tempfile.TemporaryDirectory(prefix=f"understudy-{self.name}-")
        try:
            self.start(Path(self._temporary.name))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
        if self._temporary is not None:
            self._temporary.cleanup()


class SingleService(Service):
    """One program on one port. Subclasses define how it is prepared, started and recognised as ready."""

    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    user: str | None = None
    directory: Path
    port: int
    _child: Child | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Chooses ports and writes configuration and empty data into `directory`: once, before the first start."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """Returns the program and its arguments."""

    @abstractmethod
    def answers(self) -> bool:
        """Returns whether it serves requests by now. Must not block for longer than a second."""

    def environment(self) -> Mapping[str, str]:
        """Returns the environment variables it needs beside those of this process."""
        return {}

    def start(self, directory: Path) -> str:
        self.check()
        self.directory = directory.resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.prepare()
        self.launch()
        self.wait_ready()
        return self.address

    def launch(self) -> None:
        """Starts the program without waiting for it."""
        output = self.directory / "output.log"
        self._child = spawn_foreign(self.name, self.command(), output, self.environment(), self.user)

    def wait_ready(self) -> None:
        """Waits until it serves requests; raises `Unavailable` if it ends before, or takes too long."""
        deadline = time.monotonic() + READY_WITHIN_S
        while not self.answers():
            if not self.alive:
                self._fail("it ended while it was starting")
            if time.monotonic() > deadline:
                self.kill()
                self._fail(f"it did not answer within {READY_WITHIN_S:.0f} s")
            time.sleep(POLL_S)

    def _fail(self, reason: str) -> None:
        raise Unavailable(
            f"{self.name} could not be started on port {self.port}.",
            why=f"{reason}; its last words: {self.logs(8) or '(none)'}",
            fix=f"Read all it said in {self.directory / 'output.log'}.",
        )

    def stop(self) -> None:
        self.ask_to_end()
        _gone(self.processes, END_WITHIN_S)
        self.kill()

    def ask_to_end(self) -> None:
        """Sends the signal and does not wait."""
        self.thaw()
        # Only the program itself gets the signal: it ends its own children in the order it needs.
        for process in self.processes[:1]:
            _send(process, self.stop_signal)

    def kill(self) -> None:
        if self._child is None:
            return
        tree = self.processes
        # The keeper kills all of it when its standard input closes, as it would if this process ended.
        if self._child.process.stdin is not None:
            self._child.process.stdin.close()
        self._child.end(END_WITHIN_S)
        _gone(tree, END_WITHIN_S)
        self._child = None

    def freeze(self) -> None:
        # A process stops when it next leaves the kernel, and may have started another before that.
        deadline = time.monotonic() + END_WITHIN_S
        while time.monotonic() < deadline:
            awake = [one for one in self.processes if _runs(one, psutil.STATUS_STOPPED)]
            if not awake:
                return
            for process in awake:
                _send(process, signal.SIGSTOP)
            time.sleep(POLL_S)

    def thaw(self) -> None:
        for process in self.processes:
            _send(process, signal.SIGCONT)

    def restart(self) -> str:
        self.stop()
        self.launch()
        self.wait_ready()
        return self.address

    def logs(self, lines: int = 40) -> str:
        output = self.directory / "output.log"
        return "\n".join(output.read_text(errors="replace").splitlines()[-lines:]) if output.exists() else ""

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.alive

    @property
    def processes(self) -> Sequence[psutil.Process]:
        """The program first, then what it started. The keeper is left out: it must stay awake when they are frozen."""
        if self._child is None:
            return ()
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self._child.process.pid).children(recursive=True)
        return ()


def _resident(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        return int(process.memory_info().rss)
    return 0


def _send(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def _gone(processes: Sequence[psutil.Process], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while any(_runs(process) for process in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _runs(process: psutil.Process, *but_not: str) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, *but_not)
    return False
