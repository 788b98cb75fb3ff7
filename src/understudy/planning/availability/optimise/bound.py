"""A bound no placement can beat, from a mixed-integer programme.

A query is lost at least whenever a host falls that holds one of its operators without a replica. With y = 1
for "query q has a bare operator on host h", independence gives for any order of the hosts
    loss(q) ≥ Σ_h y(q,h) · p_h · Π_{g before h} (1 - p_g),
and if no operator is bare, at least the failure of one host together with the safest possible replicas
remains: a constant r(q) that Σ y = 0 pays. Both are linear, so the programme chooses replicas (where they go
does not matter to it) and its dual bound holds for every real placement. Failures of whole domains are left
out, which only makes the bound weaker.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.planning.availability.optimise.problem import Problem

SECONDS = 10.0


@dataclass(frozen=True)
class Bound:
    """`value` bounds the availability from above, or the cost from below; `chosen` is the relaxed choice.

    `unreachable` means that even the relaxation misses the target: no placement can reach it.
    """

    value: float
    chosen: tuple[int, ...] = ()
    unreachable: bool = False


@dataclass(frozen=True)
class _Terms:
    """Loss of all queries ≥ constant + Σ weight·y, with the operators behind each y."""

    constant: float
    parts: list[tuple[float, list[int]]]

    @property
    def scale(self) -> float:
        """Scales losses up: they can be a millionth or less, which is below the solver's tolerances."""
        return 100.0 / max((abs(weight) for weight, _ in self.parts if weight), default=1.0)


def bound(problem: Problem, seconds: float = SECONDS) -> Bound | None:
    """None when HiGHS is not installed or gives no bound in time."""
    if find_spec("highspy") is None:
        return None
    terms = _terms(problem)
    return _solve(problem, terms, seconds)


def _terms(problem: Problem) -> _Terms:
    crash = problem.cluster.crash.tolist()
    queries = problem.workload.by_query
    constant = 0.0
    parts: list[tuple[float, list[int]]] = []
    for operators in queries:
        homes: dict[int, list[int]] = {}
        for operator in operators:
            homes.setdefault(problem.primary[operator], []).append(operator)
        rest = max((crash[host] * _safest(problem, host) for host in homes), default=0.0)
        constant += rest / len(queries)
        up = 1.0
        for host in sorted(homes, key=lambda h: -crash[h]):
            parts.append(((crash[host] * up - rest) / len(queries), homes[host]))
            up *= 1.0 - crash[host]
    return _Terms(constant, parts)


def _safest(problem: Problem, home: int) -> float:
    """The chance that `level` replicas on the most reliable hosts of other domains all fall."""
    groups, hosts = problem.cluster.groups, problem.cluster.hosts
    best: dict[int, float] = {}
    for position, host in enumerate(hosts):
        if groups[position] != groups[home]:
            best[groups[position]] = min(best.get(groups[position], 1.0), host.crash)
    together = 1.0
    for chance in sorted(best.values())[: problem.level]:
        together *= chance
    return together


def _solve(problem: Problem, terms: _Terms, seconds: float) -> Bound | None:
    import highspy

    solver: Any = highspy
    model = solver.Highs()
    model.silent()
    model.setOptionValue("time_limit", seconds)
    model.setOptionValue("mip_rel_gap", 1e-9)
    model.setOptionValue("threads", 1)
    cheapest = min((price for price in problem.cluster.prices), default=1.0)
    cost = [load * cheapest for load in problem.workload.load.tolist()]
    replica = [model.addBinary() for _ in cost]
    bare = [model.addVariable(0.0, 1.0) for _ in terms.parts]
    for variable, (_, operators) in zip(bare, terms.parts, strict=True):
        for operator in operators:
            model.addConstr(variable + replica[operator] >= 1)
        # A negative weight would let an unneeded y pay back: y may not exceed the bare operators.
        model.addConstr(variable + sum(replica[o] for o in operators) <= len(operators))
    scale = terms.scale
    loss = sum(scale * weight * variable for variable, (weight, _) in zip(bare, terms.parts, strict=True))
    spent = sum(c * r for c, r in zip(cost, replica, strict=True))
    if problem.cost_limit is not None:
        model.addConstr(spent <= problem.cost_limit)
        model.minimize(loss)
    else:
        allowed = 1.0 - (problem.target or 0.0) - terms.constant
        model.addConstr(loss <= scale * allowed + 1e-9)
        model.minimize(spent)
    return _read(problem, terms, model, replica)


def _read(problem: Problem, terms: _Terms, model: Any, replica: list[Any]) -> Bound | None:
    import highspy

    if model.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return Bound(value=float("inf"), unreachable=True) if problem.target is not None else None
    info = model.getInfo()
    dual = float(info.mip_dual_bound)
    if abs(dual) > 1e19 or dual != dual:
        return None
    chosen: tuple[int, ...] = ()
    if info.primal_solution_status == 2:
        solution = model.getSolution().col_value
        chosen = tuple(o for o, variable in enumerate(replica) if solution[variable.index] > 0.5)
    if problem.cost_limit is not None:
        return Bound(min(1.0, 1.0 - terms.constant - dual / terms.scale), chosen)
    return Bound(max(0.0, dual), chosen)
