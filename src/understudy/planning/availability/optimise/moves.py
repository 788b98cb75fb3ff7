"""Steps of the local search: protect a query's part on one host, drop, prune, move.

A search that adds replicas one operator at a time finds nothing where a query has two bare operators on a host: a
replica of one of them gains nothing. The unit is therefore everything a query has on one host.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from understudy.planning.availability.optimise.problem import SLACK, Changes, State

if TYPE_CHECKING:
    from collections.abc import Iterable

NEAR = 12
Part = tuple[int, int]


def parts(state: State) -> list[Part]:
    """(query, host) pairs that hold primaries."""
    primary = state.problem.primary
    return sorted({(q, primary[o]) for q, operators in enumerate(state.workload.by_query) for o in operators})


def candidates(state: State, operator: int) -> list[int]:
    """Hosts worth a look: all of a small cluster; otherwise those the operator's queries depend on anyway
    (a copy there adds no new way to fail), and the safest and cheapest ones with room."""
    hosts = range(len(state.cpu))
    if len(state.cpu) <= NEAR:
        return [host for host in hosts if state.allowed(operator, host)]
    near = {
        host
        for query in state.workload.by_operator[operator][:NEAR]
        for other in state.workload.by_query[query]
        for host in state.copies[other]
    }
    crash, prices = state.cluster.crash, state.cluster.prices
    chosen = [host for host in sorted(near) if state.allowed(operator, host)]
    others = sorted((h for h in hosts if h not in near), key=lambda h: (prices[h], crash[h], -state.cpu[h]))
    for host in others:
        if len(chosen) >= 2 * NEAR:
            break
        if state.allowed(operator, host):
            chosen.append(host)
    return chosen


def protect(state: State, part: Part) -> Changes | None:
    """A copy more for the least-copied operators of the part, each on its best host; None if one has none."""
    query, home = part
    operators = [o for o in state.workload.by_query[query] if state.problem.primary[o] == home]
    fewest = min(len(state.copies[o]) for o in operators)
    trial = state.clone()
    changes: Changes = {}
    for operator in [o for o in operators if len(state.copies[o]) == fewest]:
        best = best_host(trial, operator, changes)
        if best is None:
            return None
        changes[operator] = trial.with_replica(operator, best)
        trial.book(operator, best, -1)
    return changes


def best_host(state: State, operator: int, pending: Changes) -> int | None:
    """Most availability together with what is pending, then the cheaper one."""
    hosts = candidates(state, operator)
    if not hosts:
        return None
    prices = state.cluster.prices

    def worth(host: int) -> tuple[float, float]:
        return (state.gain(pending | {operator: state.with_replica(operator, host)}), -prices[host])

    return max(hosts, key=worth)


def build(state: State, allowed: Iterable[Part]) -> None:
    """Adds parts by gain per cost until the goal is met; a stale gain is computed again when it comes first."""
    heap: list[tuple[float, Part]] = []
    for part in allowed:
        changes = protect(state, part)
        if changes:
            heapq.heappush(heap, (-_density(state, changes), part))
    while heap and not _enough(state):
        _, part = heapq.heappop(heap)
        changes = protect(state, part)
        if not changes or not affordable(state, changes):
            continue
        density = _density(state, changes)
        if heap and density < -heap[0][0] - SLACK:
            heapq.heappush(heap, (-density, part))
            continue
        if density <= 0:
            break
        state.apply(changes)
        heapq.heappush(heap, (-density, part))


def prune(state: State) -> None:
    """Drops replicas that cost something and are not needed for the goal, the dearest first."""
    replicas = [(o, h) for o, hosts in enumerate(state.copies) for h in hosts[1:]]
    for operator, host in sorted(replicas, key=lambda r: -state.load[r[0]] * state.cluster.prices[r[1]]):
        kept = tuple(other for other in state.copies[operator] if other != host)
        changes = {operator: kept}
        loss = -state.gain(changes)
        needed = loss > 0
        if state.problem.target is not None:
            needed = not state.problem.satisfied(state.availability - loss, state.cost)
        if not needed:
            state.apply(changes)


def improve_hosts(state: State) -> None:
    """Moves single replicas to better hosts until no move helps."""
    moved = True
    while moved:
        moved = False
        for operator, hosts in enumerate(state.copies):
            for position in range(1, len(hosts)):
                moved |= _move(state, operator, position)


def _move(state: State, operator: int, position: int) -> bool:
    hosts = state.copies[operator]
    rest = hosts[:position] + hosts[position + 1 :]
    before = state.rank
    trial = state.clone()
    trial.apply({operator: rest})
    best: tuple[tuple[bool, float, float], tuple[int, ...]] | None = None
    for host in candidates(trial, operator):
        changes = {operator: (*rest, host)}
        rank = state.problem.rank(trial.availability + trial.gain(changes), trial.cost + trial.price(changes))
        if best is None or rank > best[0]:
            best = (rank, changes[operator])
    if best is None or not _clearly(best[0], before):
        return False
    state.apply({operator: best[1]})
    return True


def _clearly(new: tuple[bool, float, float], old: tuple[bool, float, float]) -> bool:
    """Better by more than rounding, so that the search ends."""
    return new[0] > old[0] or (new[0] == old[0] and new[1] > old[1] + 1e-12)


def _density(state: State, changes: Changes) -> float:
    return state.gain(changes) / max(state.price(changes), 1e-9)


def affordable(state: State, changes: Changes) -> bool:
    limit = state.problem.cost_limit
    return limit is None or state.cost + state.price(changes) <= limit + SLACK


def _enough(state: State) -> bool:
    return state.problem.target is not None and state.problem.satisfied(state.availability, state.cost)
