"""How a replica is doing: changed by its threads, pictured by every heartbeat."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from understudy.control.replica.comeback import Comeback
from understudy.model.capabilities import Capabilities
from understudy.model.messages import Deploy, ReplicaStatus, State, Steps
from understudy.model.names import SliceId

_NEW = dict(ReplicaStatus(slice=SliceId("", 0), generation=0))
"""All fields of a status as they begin."""


class LiveStatus:
    """Any thread may change it: changes are made behind one lock, single fields are read without it. Only a heartbeat
    pays for a frozen picture."""

    def __init__(self, deploy: Deploy, known: int, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        self._clock, self._wall = clock, wall
        self._lock = threading.Lock()
        own = {"slice": deploy.slice, "generation": deploy.generation}
        self._values: dict[str, Any] = {**_NEW, **own, **_asked(deploy)}
        self._comeback = Comeback.begin(clock(), known)

    def picture(self, **more: Any) -> ReplicaStatus:
        with self._lock:
            up_s = round(self._clock() - self._comeback.began, 3)
            return ReplicaStatus.trusted({**self._values, "steps": self._comeback.steps, "up_s": up_s, **more})

    def update(self, **changes: Any) -> None:
        with self._lock:
            self._values.update(changes)

    def add(self, **amounts: float) -> None:
        with self._lock:
            for name, amount in amounts.items():
                self._values[name] += amount

    def ask(self, deploy: Deploy) -> None:
        self.update(**_asked(deploy))

    def __getitem__(self, name: str) -> Any:
        """A field of `ReplicaStatus`, as of now."""
        return self._values[name]

    @property
    def capabilities(self) -> Capabilities:
        found: Capabilities = self._values["capabilities"]
        return found

    @property
    def steps(self) -> Steps:
        return self._comeback.steps

    # -- the clock of a comeback

    def begin_comeback(self, known: int) -> None:
        """From here on it is measured how long the slice takes to make something new."""
        with self._lock:
            self._comeback = Comeback.begin(self._clock(), known)

    def expect_after(self, known: int) -> None:
        """Only an epoch after this one is something new."""
        with self._lock:
            self._comeback = self._comeback.knowing(known)

    @property
    def known(self) -> int:
        return self._comeback.known

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Notes how long a step of coming up took."""
        began = self._clock()
        yield
        with self._lock:
            now = self._clock()
            self._comeback = self._comeback.stepped(name, now - began, now)

    def idled(self, since: float) -> None:
        with self._lock:
            self._comeback = self._comeback.idled(since, self._clock())

    def wired(self) -> None:
        with self._lock:
            if self._comeback.wired_at is None:
                self._comeback = self._comeback.wired(self._clock())
                self._values["state"] = State.RUNNING

    def seamless(self) -> None:
        with self._lock:
            self._comeback = self._comeback.seamless(self._wall())

    def progressed(self, epoch: int) -> None:
        with self._lock:
            self._comeback = self._comeback.progressed(epoch, self._clock(), self._wall())

    def finished(self, epoch: int, rows: int) -> None:
        with self._lock:
            self._values["epoch"] = max(self._values["epoch"], epoch)
            self._values["rows_out"] += rows


def _asked(deploy: Deploy) -> dict[str, Any]:
    asked = {"asked": deploy.capabilities, "primary": deploy.primary, "ship_every": deploy.ship_every}
    return {**asked, "branch": deploy.branch, "missing": deploy.missing}
