"""An independent check of a placement: it states the rules and shares no code with the algorithms."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.planning.availability.placement.cluster import Cluster
    from understudy.planning.availability.placement.placed import Copies
    from understudy.planning.availability.workload import Workload


def violations(workload: Workload, cluster: Cluster, copies: Copies) -> list[str]:
    """Every broken rule as a sentence; an empty list is a valid placement."""
    found: list[str] = []
    cpu: defaultdict[int, float] = defaultdict(float)
    network: defaultdict[int, float] = defaultdict(float)
    for operator, hosts in enumerate(copies):
        name = workload.operators[operator]
        if not hosts:
            found.append(f"{name} has no primary")
        if len(set(hosts)) != len(hosts):
            found.append(f"{name} has two copies on one host")
        domains = [cluster.hosts[host].domain for host in hosts]
        named = [domain for domain in domains if domain is not None]
        if len(set(named)) != len(named) and len(set(hosts)) == len(hosts):
            found.append(f"{name} has two copies in one domain")
        for host in hosts:
            cpu[host] += float(workload.load[operator])
            network[host] += float(workload.net_in[operator] + workload.net_out[operator])
    for position, machine in enumerate(cluster.hosts):
        if cpu[position] > machine.cpu + 1e-6:
            found.append(f"{machine.name} needs {cpu[position]:.4g} CPU and has {machine.cpu:.4g}")
        if network[position] > machine.network * (1 + 1e-9) + 1e-6:
            found.append(f"{machine.name} needs {network[position]:.4g} network and has {machine.network:.4g}")
    return found
