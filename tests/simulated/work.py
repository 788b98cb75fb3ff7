"""Work that takes CPU on a simulated cluster, and somebody who starts the nodes that a run asks for.

python -m tests.simulated.work    # the table of docs/elasticity.md
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.simulated import topologies
from tests.simulated.cluster import Cluster
from understudy.model.layout import Kind

TARGET = 0.6
STEPS = ((200.0, 0.5), (200.0, 1.5), (300.0, 0.5))
"""For so many seconds so many cores of work: once, three times, once."""

USUAL = {"nodes": 1, "tick_s": 0.5, "heartbeat_s": 0.5}
"""Work changes slowly, so that time may pass in larger steps."""


class Work:
    """`cores` says how many cores all slices of operators need at a time of the run. A node has one."""

    def __init__(self, cores: Callable[[float], float], **options: Any) -> None:
        scaling = {"policy": "target_cpu", "target_cpu": TARGET, "max_nodes": 5, "cool_down_s": 20.0, "ahead_s": 20.0}
        config = {"scaling": scaling | options.pop("scaling", {}), "cluster": {"rebalance_after_s": 2.0}}
        topology = topologies.word_count(counts=6)
        topology.epoch_s = 1.0
        self.cluster = Cluster(topology=topology, config=config, **(USUAL | options))
        self.cores, self.started, self.node_s, self.full_s = cores, 0, 0.0, 0.0
        self._cpu: Counter[str] = Counter()
        self.cluster.until(lambda: self.cluster.delivered > 2)
        self._began = self.cluster.now

    @property
    def elapsed(self) -> float:
        return self.cluster.now - self._began

    @property
    def nodes(self) -> int:
        """That take slices, whether they have some or not."""
        return sum(not node.draining for node in self.cluster.manager.state().nodes)

    def step(self) -> None:
        cluster = self.cluster
        self._use()
        cluster.step()
        while self.started < cluster.manager.memory.grown:
            self.started += 1
            cluster.start_node()
        self.node_s += cluster.tick_s * len(cluster.nodes)

    def _use(self) -> None:
        """Every operator slice takes an equal part; a node cannot use more than its core."""
        cluster = self.cluster
        operators = [a for a in cluster.store.assignments() if cluster.layout[a.slice.operator].kind is Kind.OPERATOR]
        hosted = Counter(one.node for one in operators)
        for name, node in cluster.nodes.items():
            wanted = self.cores(self.elapsed) * hosted[name] / len(operators)
            self.full_s += cluster.tick_s * (wanted > 1.0)
            self._cpu[name] += int(1e6 * min(1.0, wanted) * cluster.tick_s)
            node.host.usage = (self._cpu[name] / 1e6, 0)

    def steps(self, seconds: float) -> None:
        for _ in range(round(seconds / self.cluster.tick_s)):
            self.step()

    def until(self, done: Callable[[], bool], seconds: float = 300.0) -> None:
        for _ in range(round(seconds / self.cluster.tick_s)):
            if done():
                return
            self.step()
        raise AssertionError(f"did not happen within {seconds} s\n{self.cluster.story()}")


def in_steps(elapsed: float) -> float:
    for lasts, cores in STEPS:
        if elapsed < lasts:
            return cores
        elapsed -= lasts
    return STEPS[-1][1]


def oracle_node_s() -> float:
    """What somebody pays who knows the load and gets nodes at once."""
    return sum(lasts * math.ceil(cores / TARGET) for lasts, cores in STEPS)


def main() -> None:
    print("| policy | most nodes | node seconds | against an oracle | seconds a node was full |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for policy in ("target_cpu", "predictive"):
        work, most = Work(in_steps, scaling={"policy": policy}), 0
        while work.elapsed < sum(lasts for lasts, _ in STEPS):
            work.step()
            most = max(most, len(work.cluster.nodes))
        ratio = work.node_s / oracle_node_s()
        print(f"| `{policy}` | {most} | {work.node_s:,.0f} | {ratio:.2f} | {work.full_s:.0f} |")


if __name__ == "__main__":
    main()
