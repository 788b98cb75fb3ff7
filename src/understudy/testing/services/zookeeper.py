"""ZooKeeper 3.9, one server."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar

from understudy.testing.services import jars, jvm
from understudy.testing.services.base import SingleService
from understudy.testing.services.ivy import Coordinates
from understudy.testing.services.ports import free_ports

BUNDLE = jars.Bundle(
    "zookeeper",
    "3.9.5",
    (
        Coordinates("org.apache.zookeeper", "zookeeper", "3.9.5"),
        # Left out of its dependencies, and needed by its metrics and its snapshots.
        Coordinates("io.dropwizard.metrics", "metrics-core", "4.1.12.1"),
        Coordinates("org.xerial.snappy", "snappy-java", "1.1.10.8"),
        Coordinates("org.slf4j", "slf4j-simple", "2.0.13"),
    ),
)

# A session may be as short as two ticks.
CONFIGURATION = """dataDir={data}
clientPort={port}
clientPortAddress=127.0.0.1
tickTime=200
maxSessionTimeout=60000
admin.enableServer=false
4lw.commands.whitelist=ruok
"""


class ZooKeeper(SingleService):
    """One ZooKeeper server; clients connect to `address`, host:port. It grants sessions between 0.4 s and 60 s.

    Examples
    --------
    >>> with ZooKeeper() as zookeeper:  # doctest: +SKIP
    ...     client = KazooClient(zookeeper.address)
    """

    name: ClassVar[str] = "zookeeper"

    @classmethod
    def check(cls) -> None:
        jvm.check(BUNDLE, clients=("kazoo",))

    @classmethod
    def install(cls) -> str:
        return jvm.install(BUNDLE)

    def prepare(self) -> None:
        (self.port,) = free_ports(1)
        self.address = f"127.0.0.1:{self.port}"
        data = self.directory / "data"
        (self.directory / "zoo.cfg").write_text(CONFIGURATION.format(data=data, port=self.port))

    def command(self) -> Sequence[str]:
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return jvm.command(BUNDLE, heap_mb=64, main=main, arguments=[str(self.directory / "zoo.cfg")])

    def answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1) as line:
            line.sendall(b"ruok")
            # It closes the connection itself; leaving before that makes it log a trace.
            return line.makefile("rb").read() == b"imok"
        return False
