"""A node dies: who takes over how much of its work, by the rule that placed the secondaries.

python -m tests.simulated.deaths    # the table of docs/elasticity.md
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.simulated import topologies
from tests.simulated.cluster import Cluster
from understudy.control.placement import RULES
from understudy.model.recovery import Scheme

EPOCH = 3
"""When everybody works, the node dies."""


@dataclass(frozen=True)
class Death:
    """How many slices a node hosted, and how many of them each survivor took over."""

    hosted: int
    taken: dict[str, int]

    @property
    def fair(self) -> float:
        return self.hosted / len(self.taken)

    @property
    def busiest(self) -> int:
        return max(self.taken.values())


def settled(cluster: Cluster) -> bool:
    return cluster.delivered > EPOCH and cluster.settled()


def die(
    rule: str, nodes: int, slices: int, victim: str, scheme: Scheme | None, **options: Any
) -> tuple[Death, Cluster]:
    """One death in a word count with so many stateful slices; survivors that may not take anything are left out."""
    config = {"cluster": {"placement": rule}}
    topology = topologies.word_count(counts=slices)
    cluster = Cluster(nodes=nodes, topology=topology, scheme=scheme, config=config, **options)
    cluster.until(lambda: settled(cluster))
    before = {one.slice: one.node for one in cluster.store.assignments()}
    lost = [slice_id for slice_id, node in before.items() if node == victim]
    domain = cluster.nodes[victim].hello.domain
    able = [
        name for name, node in cluster.nodes.items() if name != victim and (not domain or node.hello.domain != domain)
    ]
    cluster.kill(victim)
    cluster.until(lambda: all(one.node != victim for one in cluster.store.assignments()))
    after = {one.slice: one.node for one in cluster.store.assignments()}
    taken = Counter(after[slice_id] for slice_id in lost)
    return Death(len(lost), {name: taken.get(name, 0) for name in able}), cluster


def deaths(rule: str, nodes: int, slices: int, scheme: Scheme) -> Iterator[Death]:
    """Every node of a cluster dies once, each in a cluster of its own."""
    for number in range(nodes):
        yield die(rule, nodes, slices, f"node-{number + 1}", scheme)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheme", default=Scheme.ACTIVE_STANDBY, type=Scheme)
    scheme = parser.parse_args().scheme
    print("| nodes | slices a node hosts | fair share | " + " | ".join(f"`{rule}`" for rule in RULES) + " |")
    print("| ---: " * (3 + len(RULES)) + "|")
    for nodes, slices in ((3, 10), (4, 14), (6, 28), (8, 54)):
        found = {rule: list(deaths(rule, nodes, slices, scheme)) for rule in RULES}
        hosted = [one.hosted for one in found["interleaved"]]
        fair = max(one.fair for one in found["interleaved"])
        busiest = [str(max(one.busiest for one in found[rule])) for rule in RULES]
        most = f"{min(hosted)} to {max(hosted)}" if min(hosted) < max(hosted) else str(hosted[0])
        print(f"| {nodes} | {most} | {fair:.1f} | {' | '.join(busiest)} |")


if __name__ == "__main__":
    main()
