"""Free CPU and network of every host, with "the first host that has room" in logarithmic time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.planning.availability.placement.cluster import Cluster

SLACK = 1e-9
CLOSED = -1.0


class Bins:
    """A tournament tree over the free CPU: O(log n) where plain first-fit looks at all n hosts.

    `limit` is the most copies a host may take from now on (the colour constraint); a host that has reached
    it is closed in the tree, so it costs nothing to pass over.
    """

    def __init__(self, cluster: Cluster, limit: int | None = None) -> None:
        self.groups = cluster.groups
        self.cpu = [host.cpu for host in cluster.hosts]
        self.network = [host.network for host in cluster.hosts]
        self._grow(limit)

    @classmethod
    def with_free(cls, cluster: Cluster, cpu: list[float], network: list[float]) -> Bins:
        """Hosts of which only this much is left."""
        made = object.__new__(cls)
        made.groups, made.cpu, made.network = cluster.groups, cpu, network
        made._grow(None)
        return made

    def _grow(self, limit: int | None) -> None:
        self.taken = [0] * len(self.cpu)
        self.limit = limit
        self._size = 1 << max(0, len(self.cpu) - 1).bit_length()
        self._tree = [CLOSED] * (2 * self._size)
        self._tree[self._size : self._size + len(self.cpu)] = self.cpu
        for node in range(self._size - 1, 0, -1):
            self._tree[node] = max(self._tree[2 * node], self._tree[2 * node + 1])

    def limited(self, limit: int | None) -> Bins:
        """The same room, with a limit on what comes from now on."""
        twin = object.__new__(Bins)
        twin.groups, twin.limit, twin._size = self.groups, limit, self._size
        twin.cpu, twin.network, twin._tree = self.cpu[:], self.network[:], self._tree[:]
        twin.taken = [0] * len(self.cpu)
        if limit == 0:
            for host in range(len(twin.cpu)):
                twin._set(host, CLOSED)
        return twin

    def fits(self, host: int, load: float, network: float) -> bool:
        if self.limit is not None and self.taken[host] >= self.limit:
            return False
        return self.cpu[host] + SLACK >= load and self.network[host] + SLACK >= network

    def take(self, host: int, load: float, network: float) -> None:
        self.cpu[host] -= load
        self.network[host] -= network
        self.taken[host] += 1
        full = self.limit is not None and self.taken[host] >= self.limit
        self._set(host, CLOSED if full else self.cpu[host])

    def give_back(self, host: int, load: float, network: float) -> None:
        self.cpu[host] += load
        self.network[host] += network
        self.taken[host] -= 1
        self._set(host, self.cpu[host])

    def first(self, load: float, network: float, barred: set[int]) -> int | None:
        """The first host in order with room, outside the barred domains."""
        host = self._next(0, load)
        while host is not None:
            if self.network[host] + SLACK >= network and self.groups[host] not in barred:
                return host
            host = self._next(host + 1, load)
        return None

    def why_not(self, load: float, network: float, barred: set[int]) -> str:
        allowed = [host for host, group in enumerate(self.groups) if group not in barred]
        if not allowed:
            return "every host or domain has a copy already"
        if self.limit is not None:
            allowed = [host for host in allowed if self.taken[host] < self.limit]
            if not allowed:
                return f"every allowed host has {self.limit} replicas already"
        cpu = max(self.cpu[host] for host in allowed)
        if cpu + SLACK < load:
            return f"needs {load:.4g} CPU, the most that is free on an allowed host is {max(cpu, 0):.4g}"
        wide = max(self.network[host] for host in allowed if self.cpu[host] + SLACK >= load)
        return f"needs {network:.4g} network, hosts with {load:.4g} CPU free have at most {max(wide, 0):.4g}"

    def _set(self, host: int, free: float) -> None:
        tree, node = self._tree, host + self._size
        tree[node] = free
        node >>= 1
        while node:
            left, right = tree[2 * node], tree[2 * node + 1]
            larger = left if left >= right else right
            if tree[node] == larger:
                return
            tree[node] = larger
            node >>= 1

    def _next(self, start: int, load: float) -> int | None:
        """The first leaf at or after `start` with at least `load` free."""
        if start >= len(self.cpu):
            return None
        tree, size, need = self._tree, self._size, load - SLACK
        node = start + size
        while tree[node] < need:
            # Climb until there is a sibling to the right, then look there.
            while node & 1:
                node >>= 1
            if not node:
                return None
            node += 1
        while node < size:
            node *= 2
            if tree[node] < need:
                node += 1
        return node - size


def groups_of(bins: Bins, hosts: Iterable[int]) -> set[int]:
    groups = bins.groups
    return {groups[host] for host in hosts}
