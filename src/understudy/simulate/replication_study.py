"""All planners over many random topologies and budgets: the study of Su and Zhou 2016, §VI-C."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from understudy.errors import InvalidInput
from understudy.planning.replication.mc_trees import count
from understudy.planning.replication.plan import PlanRequest
from understudy.planning.replication.registry import planner
from understudy.planning.status import Status
from understudy.simulate.topologies import TopologySpec, random_topology

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from understudy.planning.replication.problem import ReplicationProblem

RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_MOST_TREES = 60  # `dynamic` is exponential in the trees: beyond this it would only spend its time limit

_BASE = TopologySpec(skew=0.1, kind="structured")
PANELS: dict[str, dict[str, TopologySpec]] = {
    "(a) workload": {"equal": replace(_BASE, skew=0.0), "Zipf 0.1": _BASE},
    "(b) parallelism": {
        "1 to 10": _BASE,
        "10 to 20": replace(_BASE, parallelism=(10, 20)),
    },
    "(c) partitioning": {"structured": _BASE, "full": replace(_BASE, kind="full")},
    "(d) joins": {"0 %": _BASE, "50 %": replace(_BASE, joins=0.5)},
}


@dataclass(frozen=True, slots=True)
class Study:
    topologies: int = 10
    ratios: tuple[float, ...] = RATIOS
    algorithms: tuple[str, ...] = ("exact", "structure-aware", "greedy", "random", "dynamic")
    time_limit_s: float = 5.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """Means over the topologies on which the algorithm ran; `of_exact` compares on those same topologies."""

    spec: str
    ratio: float
    algorithm: str
    runs: int
    fidelity: float
    of_exact: float | None
    proven: int
    seconds: float

    def to_data(self) -> dict[str, Any]:
        return asdict(self)


def run(study: Study, specs: dict[str, TopologySpec], tick: Callable[[], None] = lambda: None) -> list[Row]:
    """`tick` is called `steps` times in all."""
    rows: list[Row] = []
    for name, spec in specs.items():
        problems = [random_topology(spec, study.seed * 1_000_003 + i) for i in range(study.topologies)]
        for ratio in study.ratios:
            rows += _rows(study, name, ratio, list(_results(study, problems, ratio, tick)))
    return rows


def steps(study: Study, specs: dict[str, TopologySpec]) -> int:
    return len(specs) * len(study.ratios) * study.topologies


Result = dict[str, tuple[float, bool, float]]


def _results(
    study: Study, problems: Sequence[ReplicationProblem], ratio: float, tick: Callable[[], None]
) -> Iterator[Result]:
    for number, problem in enumerate(problems):
        budget = round(ratio * problem.task_count)
        result: Result = {}
        for algorithm in study.algorithms:
            if algorithm == "dynamic" and count(problem) > _MOST_TREES:
                continue
            request = PlanRequest(problem, budget, time_limit_s=study.time_limit_s, seed=study.seed + number)
            plan = planner(algorithm)(request)
            result[algorithm] = (plan.output_fidelity, plan.status is Status.OPTIMAL, plan.seconds)
        tick()
        yield result


def _rows(study: Study, spec: str, ratio: float, results: list[Result]) -> Iterator[Row]:
    for algorithm in study.algorithms:
        mine = [r for r in results if algorithm in r]
        if not mine:
            continue
        total = sum(r[algorithm][0] for r in mine)
        exact = sum(r["exact"][0] for r in mine if "exact" in r)
        yield Row(
            spec,
            ratio,
            algorithm,
            len(mine),
            total / len(mine),
            total / exact if exact else None,
            sum(r[algorithm][1] for r in mine),
            sum(r[algorithm][2] for r in mine) / len(mine),
        )


def parse_spec(text: str) -> TopologySpec:
    """`kind=structured,joins=0.5,operators=5-10` as a specification."""
    known = {field.name for field in fields(TopologySpec)}
    values: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in known or not value:
            raise InvalidInput(
                f"{part} is not a property of a random topology",
                why="a specification is a list of name=value",
                fix=f"use {', '.join(sorted(known))}; for example kind=mixed,joins=0.5,operators=5-10",
            )
        values[name] = _value(name, value)
    return TopologySpec(**values)


def _value(name: str, text: str) -> Any:
    try:
        if name in ("operators", "parallelism"):
            low, _, high = text.partition("-")
            return int(low), int(high or low)
        if name == "tasks":
            return int(text)
        if name in ("skew", "joins", "forks"):
            return float(text)
    except ValueError as error:
        raise InvalidInput(
            f"{name}={text} is not a number or a range",
            why=str(error),
            fix="write for example operators=5-10, parallelism=1-10, skew=0.1",
        ) from error
    return text
