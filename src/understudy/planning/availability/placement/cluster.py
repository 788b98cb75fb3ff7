"""Hosts with CPU, network, failure domain, crash probability and price."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from understudy.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from understudy.planning.availability.workload import Floats


@dataclass(frozen=True, slots=True)
class Host:
    """`crash` is the probability to be down within the planning period (one day in Grüneberger et al. 2013)."""

    name: str
    cpu: float = 1.0
    network: float = float("inf")
    domain: str | None = None
    crash: float = 0.0
    price: float = 1.0


@dataclass(frozen=True)
class Cluster:
    """`domain_crash` is the probability that a whole domain fails at once, beside its hosts' own."""

    hosts: tuple[Host, ...]
    domain_crash: tuple[tuple[str, float], ...] = ()

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """Domain of each host as a number; a host that names no domain is one of its own."""
        numbers: dict[str, int] = {}
        groups: list[int] = []
        for position, host in enumerate(self.hosts):
            key = f"d:{host.domain}" if host.domain is not None else f"h:{position}"
            groups.append(numbers.setdefault(key, len(numbers)))
        return tuple(groups)

    @cached_property
    def group_crash(self) -> tuple[float, ...]:
        together = dict(self.domain_crash)
        crash = [0.0] * (max(self.groups, default=-1) + 1)
        for group, host in zip(self.groups, self.hosts, strict=True):
            if host.domain is not None:
                crash[group] = together.get(host.domain, 0.0)
        return tuple(crash)

    @cached_property
    def crash(self) -> Floats:
        return np.array([host.crash for host in self.hosts], dtype=np.float64)

    @cached_property
    def prices(self) -> tuple[float, ...]:
        return tuple(host.price for host in self.hosts)


def cluster_of(hosts: Sequence[Host], domain_crash: Mapping[str, float] | None = None) -> Cluster:
    names = [host.name for host in hosts]
    if len(set(names)) != len(names):
        raise _refuse("a host name occurs twice", "give every host its own name")
    for host in hosts:
        if min(host.cpu, host.network, host.price) < 0 or not 0 <= host.crash <= 1:
            raise _refuse(
                f"host {host.name!r} has a number out of range",
                "cpu, network and price are ≥ 0, crash is a probability",
            )
    given = dict(domain_crash or {})
    unknown = set(given) - {host.domain for host in hosts}
    if unknown:
        raise _refuse(f"no host is in domain {sorted(unknown)[0]!r}", "name the domain at its hosts")
    if any(not 0 <= crash <= 1 for crash in given.values()):
        raise _refuse("a domain's crash probability is not in [0, 1]", "correct it")
    return Cluster(tuple(hosts), tuple(sorted(given.items())))


@lru_cache(maxsize=64)
def uniform_cluster(count: int, cpu: float = 1.0, crash: float = 0.0) -> Cluster:
    return Cluster(tuple(Host(f"h{number}", cpu=cpu, crash=crash) for number in range(count)))


def _refuse(why: str, fix: str) -> InvalidInput:
    return InvalidInput("the hosts make no cluster", why=why, fix=fix)
