"""The exact probability that a query survives.

"Every operator has a copy on a host that is up" is a conjunction of clauses over hosts without negation. It
is solved by conditioning: a clause that contains another one is redundant; a clause with one host forces
it; clauses without a common host are independent; what remains is split on the host that occurs most often.
Correlated domains are one more variable each, split on before their hosts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.planning.availability.placement.cluster import Cluster

STEPS = 20_000


class TooHard(Exception):
    """The step budget is used up; the caller samples instead (`monte_carlo`)."""


class Survival:
    """Remembers every clause set it has solved: neighbours in a search differ in one operator."""

    def __init__(self, cluster: Cluster, steps: int = STEPS) -> None:
        self._up = (1.0 - cluster.crash).tolist()
        self._groups = cluster.groups
        self._together = [1.0 - crash for crash in cluster.group_crash]
        self._steps = steps
        self._known: dict[frozenset[tuple[int, ...]], float] = {}

    def query(self, copies: Iterable[tuple[int, ...]]) -> float:
        """Survival of a query whose operators have these hosts; raises `TooHard` past the step budget."""
        clauses = frozenset(tuple(sorted(hosts)) if len(hosts) > 1 else hosts for hosts in copies)
        if clauses not in self._known:
            self._known[clauses] = self._solve_query(clauses)
        return self._known[clauses]

    def _solve_query(self, clauses: frozenset[tuple[int, ...]]) -> float:
        hosts = sorted({host for clause in clauses for host in clause})
        local = {host: position for position, host in enumerate(hosts)}
        domains: dict[int, int] = {}
        for host in hosts:
            group = self._groups[host]
            if self._together[group] < 1.0:
                domains[group] = domains.get(group, 0) | 1 << local[host]
        solver = _Solver(
            up=[self._up[host] for host in hosts],
            domains=[(mask, self._together[group]) for group, mask in domains.items()],
            steps=self._steps,
        )
        masks = frozenset(sum(1 << local[host] for host in clause) for clause in clauses)
        return solver.solve(masks, frozenset(range(len(solver.domains))))


class _Solver:
    """Clauses are bit masks over the query's own hosts; `open` are the domains not yet decided."""

    def __init__(self, up: list[float], domains: list[tuple[int, float]], steps: int) -> None:
        self.up = up
        self.domains = domains
        self.left = steps
        self.known: dict[tuple[frozenset[int], frozenset[int]], float] = {}

    def solve(self, clauses: frozenset[int], open_: frozenset[int]) -> float:
        if 0 in clauses:
            return 0.0
        clauses = _absorb(clauses)
        touched = 0
        for clause in clauses:
            touched |= clause
        open_ = frozenset(domain for domain in open_ if self.domains[domain][0] & touched)
        key = (clauses, open_)
        if key not in self.known:
            self.left -= 1
            if self.left < 0:
                raise TooHard
            self.known[key] = self._split(clauses, open_)
        return self.known[key]

    def _split(self, clauses: frozenset[int], open_: frozenset[int]) -> float:
        probability = 1.0
        for part in self._independent(clauses, open_):
            probability *= self._condition(part, open_)
        return probability

    def _independent(self, clauses: frozenset[int], open_: frozenset[int]) -> list[frozenset[int]]:
        """Groups of clauses that share neither a host nor an undecided domain."""
        parts: list[tuple[int, list[int]]] = []
        for clause in clauses:
            reach = clause
            for domain in open_:
                mask = self.domains[domain][0]
                if mask & clause:
                    reach |= mask
            joined = [clause]
            apart: list[tuple[int, list[int]]] = []
            for mask, members in parts:
                if mask & reach:
                    reach |= mask
                    joined += members
                else:
                    apart.append((mask, members))
            parts = [*apart, (reach, joined)]
        return [frozenset(members) for _, members in parts]

    def _condition(self, clauses: frozenset[int], open_: frozenset[int]) -> float:
        for domain in sorted(open_):
            mask, up = self.domains[domain]
            if any(mask & clause for clause in clauses):
                rest = open_ - {domain}
                down = self.solve(frozenset(clause & ~mask for clause in clauses), rest)
                return up * self.solve(clauses, rest) + (1.0 - up) * down
        if len(clauses) == 1:
            return self._any_up(next(iter(clauses)))
        bit = _busiest(clauses)
        up = self.up[bit.bit_length() - 1]
        alive = self.solve(frozenset(clause for clause in clauses if not clause & bit), open_)
        if bit in clauses or up == 1.0:
            return up * alive
        return up * alive + (1.0 - up) * self.solve(frozenset(clause & ~bit for clause in clauses), open_)

    def _any_up(self, clause: int) -> float:
        down = 1.0
        while clause:
            bit = clause & -clause
            down *= 1.0 - self.up[bit.bit_length() - 1]
            clause ^= bit
        return 1.0 - down


def _absorb(clauses: frozenset[int]) -> frozenset[int]:
    kept: list[int] = []
    for clause in sorted(clauses, key=int.bit_count):
        if not any(small & clause == small for small in kept):
            kept.append(clause)
    return frozenset(kept)


def _busiest(clauses: frozenset[int]) -> int:
    counts: dict[int, int] = {}
    for clause in clauses:
        while clause:
            bit = clause & -clause
            counts[bit] = counts.get(bit, 0) + 1
            clause ^= bit
    return max(counts, key=lambda bit: (counts[bit], -bit))
