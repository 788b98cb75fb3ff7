"""Free ports for services that may be killed and started again on the same one."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

# Below the range from which Linux takes the ports of outgoing connections. Above it, a client that keeps trying to
# reach a dead service can be given that service's own port, connect to itself and keep the service from coming back.
FIRST, LAST = 18_000, 32_000


def free_ports(count: int) -> list[int]:
    """Returns distinct ports on which no process listens."""
    found: list[int] = []
    for port in random.sample(range(FIRST, LAST), LAST - FIRST):
        if len(found) == count:
            break
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found


def is_open(port: int) -> bool:
    """Returns whether a process accepts connections there."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
