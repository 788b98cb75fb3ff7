"""ZooKeeper tells watchers, forgets the dead and remembers the rest."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from understudy.testing.services import ZooKeeper

PATIENCE_S = 120.0

HOLDER = """
import sys
from kazoo.client import KazooClient
client = KazooClient(sys.argv[1], timeout=1)
client.start()
client.create("/leader", b"me", ephemeral=True)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def _client(zookeeper: ZooKeeper) -> Iterator[Any]:
    from kazoo.client import KazooClient

    client = KazooClient(zookeeper.address, timeout=10)
    client.start(PATIENCE_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def test_a_watch_fires_when_its_node_is_created(zookeeper: ZooKeeper) -> None:
    with _client(zookeeper) as writer, _client(zookeeper) as reader:
        created = threading.Event()
        assert reader.exists("/watched", watch=lambda _: created.set()) is None
        writer.create("/watched", b"value")
        assert created.wait(PATIENCE_S)
        assert reader.get("/watched")[0] == b"value"


def test_an_ephemeral_node_goes_with_the_process_that_held_it(zookeeper: ZooKeeper) -> None:
    command = [sys.executable, "-c", HOLDER, zookeeper.address]
    with (
        _client(zookeeper) as client,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder,
    ):
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        gone = threading.Event()
        assert client.exists("/leader", watch=lambda _: gone.set()) is not None
        holder.kill()
        assert gone.wait(PATIENCE_S)
        assert client.exists("/leader") is None


def test_nodes_survive_a_kill(zookeeper: ZooKeeper) -> None:
    with _client(zookeeper) as client:
        client.create("/kept", b"value")
    zookeeper.kill()
    zookeeper.restart()
    with _client(zookeeper) as client:
        assert client.get("/kept")[0] == b"value"
