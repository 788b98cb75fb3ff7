"""Random planning problems with the parameters of Su and Zhou 2016, §VI-C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from understudy.errors import InvalidInput
from understudy.planning.replication.problem import Operator, Partitioning, ReplicationProblem, Stream

Kind = Literal["structured", "full", "mixed"]


@dataclass(frozen=True, slots=True)
class TopologySpec:
    """Ranges are inclusive. `skew` is the Zipf exponent of the rates in an operator; 0 means equal.

    `tasks` fixes the total number of tasks instead of the range of parallelism. `forks` is the chance that
    an operator is read by a second one as well; joins may add more, since half of the operators can only
    have two inputs each when some output is read twice.
    """

    operators: tuple[int, int] = (5, 10)
    parallelism: tuple[int, int] = (1, 10)
    skew: float = 0.0
    kind: Kind = "mixed"
    joins: float = 0.0
    shape: Literal["tree", "chain"] = "tree"
    forks: float = 0.0
    tasks: int | None = None

    def __post_init__(self) -> None:
        ranges = (self.operators, self.parallelism)
        if any(low < 1 or high < low for low, high in ranges):
            raise InvalidInput(
                f"operators {self.operators} or parallelism {self.parallelism} is not a range",
                why="a range has a low and a high end, both at least 1",
                fix="write for example operators=(5, 10), parallelism=(1, 10)",
            )
        if not (0 <= self.joins <= 1 and 0 <= self.forks <= 1 and self.skew >= 0):
            raise InvalidInput(
                "joins, forks or skew is out of range",
                why="joins and forks are fractions, skew is a Zipf exponent",
                fix="use 0 to 1 for joins and forks, 0 or more for skew",
            )
        if self.tasks is not None and self.tasks < self.operators[1]:
            raise InvalidInput(
                f"{self.tasks} tasks cannot fill {self.operators[1]} operators",
                why="every operator has at least one task",
                fix="raise tasks or lower operators",
            )


def random_topology(spec: TopologySpec, seed: int) -> ReplicationProblem:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(spec.operators[0], spec.operators[1] + 1))
    inputs = _shape(spec, n, rng)
    correlated = _joins(spec, inputs, rng)
    sizes = _sizes(spec, n, rng)
    streams = tuple(
        Stream(f"O{up + 1}", f"O{down + 1}", _partitioning(spec.kind, sizes[up], sizes[down], rng))
        for down in range(n)
        for up in sorted(inputs[down])
    )
    totals: list[float] = []
    for i in range(n):
        received = sum(totals[up] for up in inputs[i])
        totals.append(received * float(rng.uniform(0.5, 1.0)) if inputs[i] else 1000.0)
    operators = tuple(
        Operator(f"O{i + 1}", _rates(totals[i], sizes[i], spec.skew, rng), i in correlated) for i in range(n)
    )
    return ReplicationProblem(operators, streams, (f"O{n}",))


def _shape(spec: TopologySpec, n: int, rng: np.random.Generator) -> list[set[int]]:
    """Inputs of each operator. Numbers grow downstream; the last operator is the sink."""
    inputs: list[set[int]] = [set() for _ in range(n)]
    if spec.shape == "chain":
        for i in range(n - 1):
            inputs[i + 1].add(i)
        return inputs
    pairs = min(round(spec.joins * n), (n - 1) // 2)
    for i in range(n - 1):
        later = range(i + 1, n)
        wanting = [j for j in later if len(inputs[j]) == 1] if pairs else []
        fresh = [j for j in later if len(inputs[j]) < 2]
        inputs[int(rng.choice(wanting or fresh or list(later)))].add(i)
        if rng.random() < spec.forks:
            inputs[int(rng.choice(list(later)))].add(i)
    _more_pairs(inputs, round(spec.joins * n), rng)
    return inputs


def _more_pairs(inputs: list[set[int]], wanted: int, rng: np.random.Generator) -> None:
    """A tree has room for fewer than n/2 joins; further ones read an output that another operator reads too."""
    candidates = [i for i in range(2, len(inputs)) if len(inputs[i]) < 2]
    rng.shuffle(candidates)
    candidates.sort(key=lambda i: -len(inputs[i]))  # a source becomes a join only if no other operator can
    missing = wanted - sum(len(up) > 1 for up in inputs)
    for i in candidates[: max(missing, 0)]:
        others = [j for j in range(i) if j not in inputs[i]]
        inputs[i].update(int(j) for j in rng.choice(others, 2 - len(inputs[i]), replace=False))


def _joins(spec: TopologySpec, inputs: list[set[int]], rng: np.random.Generator) -> set[int]:
    able = [i for i, up in enumerate(inputs) if len(up) > 1]
    wanted = min(round(spec.joins * len(inputs)), len(able))
    return {int(i) for i in rng.choice(able, wanted, replace=False)} if wanted else set()


def _sizes(spec: TopologySpec, n: int, rng: np.random.Generator) -> list[int]:
    if spec.tasks is None:
        return [int(k) for k in rng.integers(spec.parallelism[0], spec.parallelism[1] + 1, n)]
    parts = rng.uniform(0.5, 1.5, n)
    ends = np.round(np.cumsum(parts) / parts.sum() * (spec.tasks - n)).astype(int)
    return [int(k) + 1 for k in np.diff(ends, prepend=0)]


def _partitioning(kind: Kind, upstream: int, downstream: int, rng: np.random.Generator) -> Partitioning:
    if kind == "full" or (kind == "mixed" and rng.random() < 0.5):
        return Partitioning.FULL
    if upstream == downstream:
        return Partitioning.ONE_TO_ONE
    return Partitioning.SPLIT if upstream < downstream else Partitioning.MERGE


def _rates(total: float, size: int, skew: float, rng: np.random.Generator) -> tuple[float, ...]:
    parts = 1.0 / np.arange(1, size + 1) ** skew
    rng.shuffle(parts)
    return tuple(float(p) for p in total * parts / parts.sum())
