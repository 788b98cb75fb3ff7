"""The simulated cluster behind the real port: a server in a thread, nodes that can be killed through it."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import uvicorn

from tests.simulated.cluster import Cluster
from understudy.model.view import NodeState
from understudy.runtime.serve import compose

TOKEN = "a-token-for-tests"


class StageHands:
    """Kills and freezes simulated nodes, at the next step of the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.todo: deque[Callable[[], None]] = deque()
        self.done: list[tuple[str, str]] = []

    def reaches(self, node: NodeState, port: int) -> bool:
        return port > 0

    def kill(self, node: NodeState, *, jvm: bool) -> None:
        kill = self._cluster.kill_jvm if jvm else self._cluster.kill
        self._later("kill jvm" if jvm else "kill", node, lambda: kill(node.name))

    def freeze(self, node: NodeState, *, jvm: bool) -> None:
        freeze = self._cluster.freeze_jvm if jvm else self._cluster.freeze
        self._later("freeze jvm" if jvm else "freeze", node, lambda: freeze(node.name))

    def thaw(self, node: NodeState) -> None:
        self._later("thaw", node, lambda: self._cluster.thaw(node.name))

    def _later(self, verb: str, node: NodeState, action: Callable[[], None]) -> None:
        self.done.append((verb, node.name))
        self.todo.append(action)


class Theatre:
    """`with Theatre(tmp_path) as theatre`: a run at `theatre.url`. A step is 0.1 s of the run in `pace_s` of ours."""

    def __init__(self, home: Path, pace_s: float = 0.02, **spec: Any) -> None:
        self.cluster = Cluster(home, **{"allow_faults": True, **spec})
        self.hands = StageHands(self.cluster)
        self.pace_s = pace_s
        self.app = compose(self.cluster.manager, TOKEN, self.hands)
        self._server = uvicorn.Server(uvicorn.Config(self.app, port=0, log_level="warning"))
        self._thread = threading.Thread(target=lambda: asyncio.run(self._play()), daemon=True)
        self._steps = 0
        self._failed: BaseException | None = None

    async def _play(self) -> None:
        self._loop = asyncio.get_running_loop()
        steps = asyncio.create_task(self._step_forever())
        await self._server.serve()
        steps.cancel()

    async def _step_forever(self) -> None:
        try:
            while True:
                while self.hands.todo:
                    self.hands.todo.popleft()()
                self.cluster.step()
                self._steps += 1
                await asyncio.sleep(self.pace_s)
        except Exception as error:
            self._failed = error
            raise

    def __enter__(self) -> Theatre:
        self._thread.start()
        deadline = threading.Event()
        while not self._server.started:
            if not self._thread.is_alive():
                raise AssertionError("the server did not start")
            deadline.wait(0.01)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        if kind is None and self._failed is not None:
            raise self._failed

    def close_pages(self) -> None:
        """Every open page loses its connection, as if the manager had been restarted."""
        self._loop.call_soon_threadsafe(self.app.state.hub.dismiss_all)

    @property
    def url(self) -> str:
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"
