"""The pure part of `fidelity.py`: which plans are run, what a run has shown, and how predictions compare with it."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from understudy.model.report import TentativeEpoch
from understudy.planning.replication.metrics import Metric, Metrics
from understudy.planning.replication.plan import PlanRequest
from understudy.planning.replication.problem import ReplicationProblem
from understudy.planning.replication.registry import planner

Plan = tuple[str, ...]
Rows = Mapping[int, Sequence[str]]
"""The lines of every epoch."""

PLANNERS = {
    "optimal": ("exact", Metric.FIDELITY),
    "structure-aware": ("structure-aware", Metric.FIDELITY),
    "greedy": ("greedy", Metric.FIDELITY),
    "completeness": ("exact", Metric.COMPLETENESS),
}
"""By the names of the tables. The last one maximises internal completeness, for comparison."""
BY_FIDELITY = ("optimal", "structure-aware", "greedy")
ONE_SIDE = "one side"
"""No planner: everything but one input of a join."""
TIME_LIMIT_S = 30.0
STABLE, TENTATIVE, NOTHING, UNSETTLED = "stable", "tentative", "nothing", "unsettled"


# -- what to run


@dataclass(frozen=True)
class Choice:
    """What a planner keeps with a budget, and what is predicted for it."""

    planner: str
    budget: int
    plan: Plan
    fidelity: float
    completeness: float


def choose(problem: ReplicationProblem, budgets: Iterable[int], planners: Iterable[str]) -> list[Choice]:
    """One choice for every planner and budget; different ones may have the same plan."""
    metrics, found = Metrics(problem), []
    wanted = list(budgets)
    for name in planners:
        algorithm, metric = PLANNERS[name]
        for budget in wanted:
            made = planner(algorithm)(PlanRequest(problem, budget, metric, TIME_LIMIT_S))
            plan = tuple(sorted(made.replicas))
            found.append(Choice(name, budget, plan, *predicted(metrics, plan)))
    return found


def without_a_side(problem: ReplicationProblem) -> list[Choice]:
    """For every input of a join the plan that lacks just that: rows are processed everywhere, and none come out."""
    metrics, found = Metrics(problem), []
    joins = {one.name for one in problem.operators if one.correlated}
    for side in (stream.source for stream in problem.streams if stream.target in joins):
        plan = tuple(sorted(name for name in problem.tasks if name.partition("[")[0] != side))
        found.append(Choice(ONE_SIDE, len(plan), plan, *predicted(metrics, plan)))
    return found


def predicted(metrics: Metrics, plan: Plan) -> tuple[float, float]:
    """Output fidelity and internal completeness if nothing but the plan is left."""
    alive = metrics.alive(metrics.problem.task_numbers[name] for name in plan)
    return round(metrics.output_fidelity(alive), 6), round(metrics.internal_completeness(alive), 6)


def to_run(choices: Iterable[Choice], done: Iterable[Plan] = ()) -> list[Plan]:
    """Every plan once, those with the most slices last; without those that were run already."""
    known = set(done)
    return sorted({one.plan for one in choices} - known, key=lambda plan: (len(plan), plan))


def arranged(
    placed: Mapping[str, str], tasks: Iterable[str], plan: Plan, nodes: Sequence[str]
) -> tuple[str, dict[str, str]]:
    """The node to lose, and where slices have to move first, as few as possible.

    Of the tasks, those of the plan belong on the node that stays, all others on the one that is lost. What is no task,
    a sink, stays.
    """
    known = set(tasks)

    def moves(lost: str, stays: str) -> dict[str, str]:
        wanted = {one: lost if one in known and one not in plan else stays for one in placed}
        return {one: node for one, node in wanted.items() if placed[one] != node}

    first, second = nodes
    ways = [(first, moves(first, second)), (second, moves(second, first))]
    return min(ways, key=lambda way: len(way[1]))


# -- what a run has shown


@dataclass(frozen=True)
class Outage:
    """What was seen of a run: `first` is the first epoch of which the lost slices have made nothing, `until` the one
    after the last that is looked at, `stable` what was delivered in the end. `shown` is what a reader of the sink found
    when the outage ended: tentative epochs, and `delivered` stable ones. `forked`: tentative output was under way."""

    first: int
    settled: int
    until: int
    stable: Rows
    shown: Rows
    delivered: int
    forked: bool


@dataclass(frozen=True)
class Run:
    """One plan, run once.

    - `accuracy`: of the stable rows of the epochs that are looked at, the share that was shown, in whichever epoch.
    - `in_epoch`: the share that was shown in its own epoch, which is `had` of the report.
    - `right`: of the rows that were shown in these epochs, the share that is stable somewhere.
    - `fidelity`, `completeness`: as the run predicted them when the slices were missing; None where it had no branch.
    """

    query: str
    plan: Plan
    state: str
    accuracy: float | None
    in_epoch: float | None
    right: float | None
    fidelity: float | None
    completeness: float | None
    epochs: int
    rows: int
    missing: Plan = ()
    first_output_s: float | None = None
    seconds: float = 0.0
    digests: tuple[str, ...] = field(default=(), repr=False)


def fold(query: str, plan: Plan, seen: Outage, told: Sequence[TentativeEpoch]) -> Run:
    """The run in figures; `told` are the tentative epochs of the sink, from the report."""
    state = state_of(seen)
    epochs = sorted(set(range(seen.settled, seen.until)) & seen.shown.keys()) if state == TENTATIVE else []
    due = _together(seen.stable, epochs)
    shown, anywhere = _together(seen.shown, epochs), _together(seen.shown, seen.shown)
    in_epoch = sum((_together(seen.stable, [e]) & _together(seen.shown, [e])).total() for e in epochs)
    # A fork that is replaced later writes epochs again, perhaps without other slices.
    first = {one.epoch: one for one in reversed(told) if one.epoch in epochs}
    held = [one for one in first.values() if one.missing]
    if state == TENTATIVE and not due:
        state = UNSETTLED
    sure = {STABLE: 1.0, NOTHING: 0.0, UNSETTLED: None}
    return Run(
        query=query,
        plan=plan,
        state=state,
        accuracy=sure[state] if state in sure else share((due & anywhere).total(), due.total()),
        in_epoch=sure[state] if state in sure else share(in_epoch, due.total()),
        right=share((shown & _together(seen.stable, seen.stable)).total(), shown.total()),
        fidelity=_mean(one.fidelity for one in held),
        completeness=_mean(one.completeness for one in held),
        epochs=len(epochs),
        rows=due.total(),
        missing=tuple(sorted({name for one in held for name in one.missing})),
    )


def state_of(seen: Outage) -> str:
    """How the output went on: for good, tentatively, or not at all; `unsettled` if it was too slow to say."""
    if seen.delivered >= seen.until:
        return STABLE
    if not seen.forked:
        # Epochs that were under way when the node was lost may still come.
        return NOTHING if seen.delivered < seen.settled else UNSETTLED
    return TENTATIVE if any(seen.settled <= epoch < seen.until for epoch in seen.shown) else UNSETTLED


def _together(rows: Rows, epochs: Iterable[int]) -> Counter[str]:
    return Counter(line for epoch in epochs for line in rows.get(epoch, ()))


def share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(statistics.fmean(known), 6) if known else None


# -- predictions beside what happened


@dataclass(frozen=True)
class Point:
    """A choice beside the run of its plan. Predictions are those of the run where it had a branch."""

    query: str
    planner: str
    budget: int
    slices: int
    fidelity: float
    completeness: float
    accuracy: float | None
    in_epoch: float | None
    state: str


def points(query: str, choices: Iterable[Choice], runs: Mapping[Plan, Run]) -> list[Point]:
    """All choices whose plan was run."""
    return [_point(query, one, runs[one.plan]) for one in choices if one.plan in runs]


def _point(query: str, choice: Choice, run: Run) -> Point:
    return Point(
        query=query,
        planner=choice.planner,
        budget=choice.budget,
        slices=len(choice.plan),
        fidelity=choice.fidelity if run.fidelity is None else run.fidelity,
        completeness=choice.completeness if run.completeness is None else run.completeness,
        accuracy=run.accuracy,
        in_epoch=run.in_epoch,
        state=run.state,
    )


@dataclass(frozen=True)
class Errors:
    """Mean absolute errors of both predictions against the accuracy, and of how many points."""

    fidelity: float
    completeness: float
    points: int


def errors(several: Iterable[Point], *, states: Iterable[str] = (STABLE, TENTATIVE, NOTHING)) -> Errors | None:
    """None if no point is of such a state."""
    wanted = set(states)
    found = [(one, one.accuracy) for one in several if one.accuracy is not None and one.state in wanted]
    if not found:
        return None
    return Errors(
        statistics.fmean(abs(one.fidelity - real) for one, real in found),
        statistics.fmean(abs(one.completeness - real) for one, real in found),
        len(found),
    )


def worst_completeness(several: Iterable[Point]) -> Point | None:
    """Where internal completeness promises the most above what came."""
    known = [(one.completeness - one.accuracy, one) for one in several if one.accuracy is not None]
    return max(known, key=lambda pair: pair[0])[1] if known else None
