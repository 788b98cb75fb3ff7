"""Nodes and pages that only talk: they load the manager as real ones do, and cost next to nothing themselves.

python benchmarks/cast.py nodes URL TOKEN 5 --drop-every 10    # nodes that host what they are told, and fail at times
python benchmarks/cast.py pages URL 20                         # dashboards that read every frame
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from understudy.model.messages import (
    Analysis,
    Check,
    Checked,
    Deploy,
    Heartbeat,
    Hello,
    Receipt,
    ReplicaStatus,
    State,
    Steps,
    Stop,
    Stored,
    to_node,
)
from understudy.model.names import SliceId

BEAT_S = 0.1
STATEFUL = {"users": False, "sessions": True, "totals": True}


class FakeNode:
    """Finishes an epoch of everything it hosts every second; its sink delivers what it finishes."""

    def __init__(self, name: str, token: str, epoch: int = 0) -> None:
        self.name, self.token = name, token
        self.replicas: dict[SliceId, ReplicaStatus] = {}
        self.receipts: dict[int, Receipt] = {}
        self.began = time.time() - epoch

    async def serve(self, url: str, drop_every_s: float, rng: random.Random) -> None:
        while True:
            self.replicas.clear()
            try:
                async with connect(url, compression=None, max_size=None) as socket:
                    hello = Hello(node=self.name, token=self.token, pid=1, domain=f"rack-{rng.randrange(3)}")
                    await socket.send(hello.model_dump_json())
                    life = drop_every_s * rng.uniform(0.5, 1.5) if drop_every_s else None
                    await asyncio.wait_for(asyncio.gather(self._hear(socket), self._beat(socket)), life)
            except (TimeoutError, OSError):
                pass
            except Exception as error:  # noqa: BLE001 - whatever ends a connection, the next one is tried
                print(f"{self.name}: {error}", flush=True)
            await asyncio.sleep(1.0)

    async def _beat(self, socket: ClientConnection) -> None:
        while True:
            epoch = int(time.time() - self.began)
            self.replicas = {name: self._at(replica, epoch) for name, replica in self.replicas.items()}
            replicas, receipts = tuple(self.replicas.values()), tuple(self.receipts.values())
            cpu_s, memory = time.process_time() / 5, 400_000_000
            beat = Heartbeat(ready=True, replicas=replicas, receipts=receipts, cpu_s=cpu_s, memory_bytes=memory)
            await socket.send(beat.model_dump_json())
            await asyncio.sleep(BEAT_S)

    def _at(self, replica: ReplicaStatus, epoch: int) -> ReplicaStatus:
        if replica.slice.operator == "out" and epoch not in self.receipts and epoch > replica.epoch:
            for late in range(max(0, replica.epoch + 1), epoch + 1):
                self.receipts[late] = Receipt(sink="out", epoch=late, rows=10, digest="00", at=time.time())
        steps = Steps(deploy=0.2, read_checkpoint=0.1, replay=0.3, replayed=2, done=True, done_at=time.time())
        done = replica.steps if replica.steps.done else steps
        rows = replica.rows_out + 100
        changes = {"epoch": epoch, "rows_in": rows, "rows_out": rows, "steps": done, "state": State.RUNNING}
        return replica.model_copy(update=changes)

    async def _hear(self, socket: ClientConnection) -> None:
        async for text in socket:
            message: Any = to_node.validate_json(text)
            if isinstance(message, Check):
                found = {name: Analysis(stateful=stateful, output="{}") for name, stateful in STATEFUL.items()}
                await socket.send(Checked(operators=found).model_dump_json())
            elif isinstance(message, Deploy):
                self.replicas[message.slice] = self._deployed(message)
            elif isinstance(message, Stop):
                self.replicas.pop(message.slice, None)
            elif isinstance(message, Stored):
                self.receipts = {epoch: r for epoch, r in self.receipts.items() if epoch > message.epoch}

    def _deployed(self, told: Deploy) -> ReplicaStatus:
        """Has the capabilities of a deployment at once."""
        before = self.replicas.get(told.slice)
        if before is None or before.generation != told.generation:
            epoch = max(-1, told.resume_at - 1)
            before = ReplicaStatus(slice=told.slice, generation=told.generation, epoch=epoch)
        changes = {
            "primary": told.primary,
            "asked": told.capabilities,
            "capabilities": told.capabilities,
            "ship_every": told.ship_every,
        }
        return before.model_copy(update=changes)


async def nodes(url: str, token: str, count: int, drop_every_s: float, epoch: int) -> None:
    rng = random.Random(1)
    cast = [FakeNode(f"node-{number + 1}", token, epoch) for number in range(count)]
    # The last one stays, so that there is always somebody to go to.
    drops = [drop_every_s] * (count - 1) + [0.0]
    target = url.replace("http", "ws", 1) + "/nodes"
    await asyncio.gather(*(node.serve(target, drop, rng) for node, drop in zip(cast, drops, strict=True)))


async def pages(url: str, count: int) -> None:
    async def look() -> None:
        async with connect(url.replace("http", "ws", 1) + "/api/v1/live", max_size=None) as socket:
            await socket.send("{}")
            async for _ in socket:
                pass

    await asyncio.gather(*(look() for _ in range(count)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    first = verbs.add_parser("nodes")
    first.add_argument("url")
    first.add_argument("token")
    first.add_argument("count", type=int)
    first.add_argument("--drop-every", type=float, default=0.0)
    first.add_argument("--epoch", type=int, default=0, help="the first one")
    second = verbs.add_parser("pages")
    second.add_argument("url")
    second.add_argument("count", type=int)
    given = parser.parse_args()
    print(json.dumps({"cast": given.verb, "count": given.count}), flush=True)
    if given.verb == "nodes":
        asyncio.run(nodes(given.url, given.token, given.count, given.drop_every, given.epoch))
    else:
        asyncio.run(pages(given.url, given.count))


if __name__ == "__main__":
    main()
