"""The nodes of a run as the manager knows them: who is connected, what was last heard, what is sent to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from understudy.errors import InvalidInput
from understudy.model.messages import Failure, Hello
from understudy.model.run import Frozen
from understudy.model.snapshot import NodeView
from understudy.runtime.connection import Connection

Send = Callable[[Frozen], None]


class Members:
    """Connections by the name of their node. A node that was given up is forgotten and has to join again."""

    def __init__(self) -> None:
        self.connections: dict[str, Connection] = {}

    def expect(self, nodes: Iterable[str], until: float) -> None:
        """Nodes that worked when the manager was killed have until then to call again."""
        for node in nodes:
            self.connections.setdefault(node, Connection(node, until))

    def connect(self, hello: Hello, send: Send, now: float, *, draining: bool, leaves_at: float | None = None) -> None:
        self.connections[hello.node] = Connection(
            hello.node, now, send, hello, draining=draining, leaves_at=leaves_at, steady_at=now
        )

    def refuses(self, hello: Hello) -> Failure | None:
        """Why a node may not join: another process that is connected has its name, and they would share a directory."""
        current = self.connections.get(hello.node)
        if current is None or current.send is None or current.hello is None:
            return None
        if (current.hello.pid, current.hello.instance) == (hello.pid, hello.instance):
            return None
        return Failure(
            what=f"there is a node {hello.node} already",
            why=f"process {current.hello.pid} is connected to the manager under this name",
            fix="give another --name, or end that process",
        )

    def disconnect(self, name: str, send: Send) -> None:
        """Unless the node has another connection by now."""
        connection = self.connections.get(name)
        if connection is not None and connection.send is send:
            connection.send = None
            if connection.left:
                self.lose(name)

    def connected(self, name: str) -> Connection | None:
        connection = self.connections.get(name)
        return connection if connection is not None and connection.send is not None else None

    def introduced(self, name: str) -> tuple[Connection, Hello]:
        """A node that has joined; raises InvalidInput if there is none of this name."""
        connection = self.connections.get(name)
        if connection is None or connection.hello is None:
            raise InvalidInput(
                f"there is no node {name}",
                why=f"the nodes of this run are {', '.join(sorted(self.connections)) or 'none'}",
                fix="name one of them",
            )
        return connection, connection.hello

    def release(self, name: str) -> bool:
        """A node may end; nobody misses it then. Returns whether that is new."""
        connection = self.connections.get(name)
        if connection is None or connection.left:
            return False
        connection.left = True
        return True

    def lose(self, name: str) -> str:
        """Forgets a node. Returns its domain, if it had told it."""
        connection = self.connections.pop(name, None)
        return "" if connection is None else connection.domain

    def forgive(self, seconds: float, now: float) -> None:
        """The manager was away for so long: that is no silence of the nodes."""
        for connection in self.connections.values():
            connection.forgive(seconds, now)

    def views(self, now: float, running: bool) -> dict[str, NodeView]:
        """For decisions."""
        return {name: connection.view(now, running) for name, connection in self.connections.items()}

    def send(self, node: str, message: Frozen) -> None:
        connection = self.connections.get(node)
        if connection is not None:
            connection.tell(message)

    def broadcast(self, message: Frozen) -> None:
        for connection in self.connections.values():
            connection.tell(message)
