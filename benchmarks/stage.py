"""A real manager process with fifty slices, and a cast around it, for the two benchmarks of the dashboard."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from understudy.model.page import View
from understudy.model.run import RunSpec
from understudy.runtime.home import Home
from understudy.runtime.launcher import free_port
from understudy.runtime.prepare import prepare
from understudy.runtime.processes import spawn

HERE = Path(__file__).parent
NODES = 5
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Stage:
    url: str
    token: str

    def view(self) -> View:
        return View.model_validate_json(httpx.get(f"{self.url}/api/v1/view", timeout=10).text)

    def metrics(self) -> dict[str, float]:
        """The samples without labels."""
        lines = httpx.get(f"{self.url}/metrics", timeout=10).text.splitlines()
        return {name: float(value) for name, _, value in (line.partition(" ") for line in lines if line[:1] != "#")}

    def note(self, number: int) -> None:
        """One more event."""
        body = {"spec": f"note:{number}", "target": f"somebody-{number % 7}", "at": time.time()}
        httpx.post(
            f"{self.url}/api/v1/faults", json=body, headers={"Authorization": f"Bearer {self.token}"}, timeout=10
        )


@contextmanager
def playing(drop_every_s: float = 0.0) -> Iterator[Stage]:
    """Until every slice is healthy, then as long as the caller likes."""
    with tempfile.TemporaryDirectory() as folder:
        home, port = Home(Path(folder)), free_port()
        prepare(home, RunSpec.of("stage", str(HERE / "fifty.py"), nodes=NODES, allow_faults=True))
        manager = spawn("manager", "understudy.runtime.serve", [folder, str(port)], home.logs / "manager.log", {})
        stage = Stage(f"http://127.0.0.1:{port}", home.token())
        cast = None
        try:
            _wait_for_port(stage, manager.tail)
            drops = ["--drop-every", str(drop_every_s)]
            # A token may begin with a hyphen.
            cast = start(["nodes", *drops, "--", stage.url, stage.token, str(NODES)])
            _wait_for_slices(stage, manager.tail)
            yield stage
        finally:
            if cast is not None:
                cast.kill()
                cast.wait()
            manager.kill()


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(HERE / "cast.py"), *arguments], stdout=subprocess.DEVNULL)


def _wait_for_port(stage: Stage, why: object) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{stage.url}/health/live")
            return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise SystemExit(f"the manager does not answer: {why() if callable(why) else ''}")


def _wait_for_slices(stage: Stage, why: object) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        view = stage.view()
        if len(view.slices) == 50 and sum(entry.health == "healthy" for entry in view.slices) >= 40:
            return
        time.sleep(0.2)
    raise SystemExit(f"the slices did not start: {why() if callable(why) else ''}")
