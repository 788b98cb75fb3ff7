"""Random small problems for Hypothesis, and the answer nobody can argue with."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from understudy.planning.replication.metrics import Metric, Metrics
from understudy.planning.replication.problem import Operator, Partitioning, ReplicationProblem, Stream


@st.composite
def problems(draw: st.DrawFn, most_tasks: int = 14) -> ReplicationProblem:
    """Any shape: forks, diamonds, several sinks, joins, shares with holes, silent tasks."""
    count = draw(st.integers(1, 6))
    sizes: list[int] = []
    for i in range(count):
        left = most_tasks - sum(sizes) - (count - i - 1)
        sizes.append(draw(st.integers(1, min(5, left))))
    rate = st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.5, 10.0])
    operators, streams = [], []
    for i, size in enumerate(sizes):
        rates = tuple(draw(rate) for _ in range(size))
        operators.append(Operator(f"O{i}", rates, draw(st.booleans())))
        ups = draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set()
        streams += [draw(_stream(f"O{up}", f"O{i}", sizes[up], size)) for up in sorted(ups)]
    return ReplicationProblem(tuple(operators), tuple(streams))


@st.composite
def _stream(draw: st.DrawFn, source: str, target: str, n1: int, n2: int) -> Stream:
    fitting = [Partitioning.FULL, Partitioning.MERGE if n1 >= n2 else Partitioning.SPLIT]
    fitting += [Partitioning.ONE_TO_ONE] if n1 == n2 else []
    if draw(st.integers(0, 4)):
        return Stream(source, target, draw(st.sampled_from(fitting)))
    share = st.sampled_from([0.0, 1.0, 2.0])
    shares = [[draw(share) for _ in range(n2)] for _ in range(n1)]
    for j in range(n2):  # every reader is fed by somebody
        shares[draw(st.integers(0, n1 - 1))][j] = 1.0
    return Stream(source, target, shares=tuple(tuple(row) for row in shares))


def best_by_brute_force(problem: ReplicationProblem, metric: Metric = Metric.FIDELITY) -> list[float]:
    """The best value for each budget, over all subsets of tasks."""
    count = problem.task_count
    alive = (np.arange(1 << count)[:, None] >> np.arange(count)) & 1
    values = Metrics(problem).values(alive.astype(bool), metric)
    spent = alive.sum(axis=1)
    by_size = [float(values[spent == size].max()) for size in range(count + 1)]
    return [max(by_size[: size + 1]) for size in range(count + 1)]
