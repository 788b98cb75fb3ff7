"""The two problems of Grüneberger et al. 2013, §4, and a state that evaluates changes.

Primaries stay where they are: they run, and moving them is a migration, not a replication decision. Cost is
what the replicas take, load times price of the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from understudy.errors import InvalidInput
from understudy.planning.availability.plan import cost_of
from understudy.planning.availability.survival.exact import Survival, TooHard

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.planning.availability.placement import Cluster, Copies
    from understudy.planning.availability.workload import Workload
    from understudy.planning.status import Status

SLACK = 1e-9
Changes = dict[int, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Problem:
    """Give `cost_limit` for the most availability, or `target` for the least cost; never both."""

    workload: Workload
    cluster: Cluster
    primary: tuple[int, ...]
    cost_limit: float | None = None
    target: float | None = None
    level: int = 1

    def __post_init__(self) -> None:
        if (self.cost_limit is None) == (self.target is None):
            raise InvalidInput(
                "the optimiser needs one goal",
                why="either a cost limit (most availability) or a target (least cost)",
                fix="give exactly one of the two",
            )
        if (self.cost_limit or 0) < 0 or not 0 <= (self.target or 0) <= 1:
            raise InvalidInput(
                "the goal is out of range",
                why="a cost limit is at least 0, a target is a probability",
                fix="for 99.9 % write 0.999",
            )

    def satisfied(self, availability: float, cost: float) -> bool:
        if self.cost_limit is not None:
            return cost <= self.cost_limit + SLACK
        return availability >= (self.target or 0.0) - SLACK

    def rank(self, availability: float, cost: float) -> tuple[bool, float, float]:
        """Larger is better; an answer that breaks its constraint is worse than any that keeps it.

        Rounded: costs are sums kept up to date by adding and taking away, and a search that chases the last
        digit never ends.
        """
        satisfied = self.satisfied(availability, cost)
        availability, cost = round(availability, 13), round(cost, 9)
        if self.cost_limit is not None:
            return (satisfied, availability, -cost) if satisfied else (satisfied, -cost, availability)
        return (satisfied, -cost, availability) if satisfied else (satisfied, availability, -cost)


@dataclass(frozen=True)
class Answer:
    method: str
    status: Status
    copies: Copies
    availability: float
    cost: float
    seconds: float = 0.0
    note: str = ""


class State:
    """Replicas, free room, cost and the survival of every query, kept up to date change by change."""

    def __init__(self, problem: Problem, survival: Survival | None = None) -> None:
        self.problem = problem
        self.workload, self.cluster = problem.workload, problem.cluster
        self.survival = survival or Survival(problem.cluster)
        self.load = self.workload.load.tolist()
        self.network = self.workload.network.tolist()
        self.copies: list[tuple[int, ...]] = [(host,) for host in problem.primary]
        self.cpu = [host.cpu for host in self.cluster.hosts]
        self.room = [host.network for host in self.cluster.hosts]
        for operator, host in enumerate(problem.primary):
            self.cpu[host] -= self.load[operator]
            self.room[host] -= self.network[operator]
        self.cost = 0.0
        self.values = [self._value(query, {}) for query in range(len(self.workload.queries))]

    @property
    def availability(self) -> float:
        return sum(self.values) / len(self.values) if self.values else 1.0

    @property
    def rank(self) -> tuple[bool, float, float]:
        return self.problem.rank(self.availability, self.cost)

    def clone(self) -> State:
        twin = object.__new__(State)
        twin.__dict__ |= self.__dict__
        twin.copies, twin.values = self.copies[:], self.values[:]
        twin.cpu, twin.room = self.cpu[:], self.room[:]
        return twin

    def with_replica(self, operator: int, host: int) -> tuple[int, ...]:
        return (*self.copies[operator], host)

    def allowed(self, operator: int, host: int) -> bool:
        """Room for one more copy, and no copy in the same domain yet."""
        groups = self.cluster.groups
        return (
            self.cpu[host] + SLACK >= self.load[operator]
            and self.room[host] + SLACK >= self.network[operator]
            and all(groups[host] != groups[other] for other in self.copies[operator])
            and len(self.copies[operator]) <= self.problem.level
        )

    def price(self, changes: Mapping[int, tuple[int, ...]]) -> float:
        prices = self.cluster.prices
        return float(
            sum(
                self.load[operator]
                * (sum(prices[h] for h in new[1:]) - sum(prices[h] for h in self.copies[operator][1:]))
                for operator, new in changes.items()
            )
        )

    def gain(self, changes: Changes) -> float:
        """What the changes add to the availability."""
        queries = {query for operator in changes for query in self.workload.by_operator[operator]}
        delta = sum(self._value(query, changes) - self.values[query] for query in queries)
        return delta / max(1, len(self.values))

    def apply(self, changes: Changes) -> None:
        self.cost += self.price(changes)
        for operator, new in changes.items():
            for host in self.copies[operator][1:]:
                self.book(operator, host, +1)
            for host in new[1:]:
                self.book(operator, host, -1)
            self.copies[operator] = new
        for query in {query for operator in changes for query in self.workload.by_operator[operator]}:
            self.values[query] = self._value(query, {})

    def answer(self, method: str, status: Status, note: str = "") -> Answer:
        copies = tuple(self.copies)
        cost = cost_of(self.workload, self.cluster, copies)
        return Answer(method, status, copies, self.availability, cost, note=note)

    def book(self, operator: int, host: int, sign: int) -> None:
        self.cpu[host] += sign * self.load[operator]
        self.room[host] += sign * self.network[operator]

    def _value(self, query: int, changes: Changes) -> float:
        copies = [changes.get(o, self.copies[o]) for o in self.workload.by_query[query]]
        try:
            return self.survival.query(copies)
        except TooHard:
            return self._at_least(copies)

    def _at_least(self, copies: list[tuple[int, ...]]) -> float:
        """Multiplies the survival of the operators: a lower bound, because a host that is up helps all of them."""
        value = 1.0
        for hosts in copies:
            value *= self.survival.query([hosts])
        return value


def load_copies(problem: Problem, copies: Copies, survival: Survival | None = None) -> State:
    state = State(problem, survival)
    state.apply({o: hosts for o, hosts in enumerate(copies) if len(hosts) > 1})
    return state
