"""What a problem may not be, where problems come from, and what the validator refuses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from understudy.errors import InvalidInput
from understudy.planning.replication.files import load, load_rates, parse
from understudy.planning.replication.from_topology import problem_from
from understudy.planning.replication.plan import PlanRequest
from understudy.planning.replication.registry import planner
from understudy.planning.replication.validator import problems_with
from understudy.planning.status import Status
from understudy.simulate.topologies import TopologySpec, random_topology

if TYPE_CHECKING:
    from pathlib import Path

AB = [{"name": "A", "tasks": [1, 2]}, {"name": "B", "tasks": [1, 1, 1]}]


def _stream(**fields: Any) -> dict[str, Any]:
    return {"from": "A", "to": "B", "partitioning": "full"} | fields


@pytest.mark.parametrize(
    ("data", "place", "allowed"),
    [
        ({"operators": []}, "no operators", "at least one"),
        ({"operators": [{"name": "A", "tasks": []}]}, "operator A has no tasks", "one output rate per task"),
        ({"operators": [{"name": "A", "tasks": [1, -2]}]}, r"A\[1\]", "0 or greater"),
        ({"operators": [{"name": "A", "tasks": [float("nan")]}]}, r"A\[0\]", "finite"),
        ({"operators": [AB[0], AB[0]]}, "A is defined 2 times", "own name"),
        ({"operators": AB, "streams": [_stream(to="X")]}, "A -> X", "A, B"),
        ({"operators": AB, "streams": [_stream(), _stream()]}, "2 streams go from A to B", "one stream"),
        ({"operators": AB, "streams": [_stream(partitioning="one-to-one")]}, "A -> B is one-to-one", "equal"),
        ({"operators": AB, "streams": [_stream(partitioning="merge")]}, "A -> B is merge", "more to fewer"),
        (
            {"operators": AB, "streams": [{"from": "B", "to": "A", "partitioning": "split"}]},
            "B -> A is split",
            "fewer to more",
        ),
        (
            {"operators": AB, "streams": [_stream(), _stream(**{"from": "B", "to": "A"})]},
            "cycle",
            "one direction",
        ),
        (
            {"operators": AB, "streams": [_stream(shares=[[1, 1, 0], [1, 0, 0]])]},
            r"feeds task B\[2\]",
            "share above",
        ),
        (
            {"operators": AB, "streams": [_stream(shares=[[1, 1, 1]])]},
            "A -> B have the wrong shape",
            "2 rows",
        ),
        (
            {"operators": AB, "streams": [_stream(shares=[[1, 1, -1], [1, 1, 1]])]},
            "A -> B hold",
            "0 or greater",
        ),
        ({"operators": AB, "sinks": ["Z"]}, "sink Z", "A, B"),
        (
            {"operators": AB, "streams": [_stream(partitioning="half")]},
            "streams.0.partitioning",
            "small problem",
        ),
        ({"operators": AB, "streams": [{"from": "A", "to": "B"}]}, "streams.0", "small problem"),
        ({"operators": AB, "extra": 1}, "extra", "small problem"),
        ([1, 2], "top level", "small problem"),
    ],
)
def test_an_error_names_the_place_and_what_is_allowed(data: Any, place: str, allowed: str) -> None:
    with pytest.raises(InvalidInput, match=place) as caught:
        parse(data)
    assert allowed in caught.value.fix


def test_files_in_json_and_yaml_mean_the_same(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"operators": [{"name": "A", "tasks": [1, 2]}]}')
    (tmp_path / "p.yaml").write_text("operators:\n  - {name: A, tasks: [1, 2]}\n")
    assert load(tmp_path / "p.json") == load(tmp_path / "p.yaml")
    (tmp_path / "bad.json").write_text("{")
    for name in ("bad.json", "absent.json"):
        with pytest.raises(InvalidInput, match=name):
            load(tmp_path / name)


def test_sinks_are_the_operators_nobody_reads_unless_named() -> None:
    streams = [{"from": "A", "to": "B", "partitioning": "split"}]
    assert parse({"operators": AB, "streams": streams}).sinks == ("B",)
    assert parse({"operators": AB, "streams": streams, "sinks": ["A", "B"]}).sinks == ("A", "B")


@dataclass(frozen=True)
class _Source:
    name: str
    slices: int


@dataclass(frozen=True)
class _Op:
    name: str
    inputs: tuple[str, ...]
    slices: int
    key: str | None = None
    input: str = "independent"


@dataclass(frozen=True)
class _Topology:
    sources: tuple[_Source, ...]
    operators: tuple[_Op, ...]


def test_a_topology_becomes_a_problem() -> None:
    topology = _Topology(
        (_Source("lines", 2), _Source("users", 2)),
        (
            _Op("words", ("lines",), 2),
            _Op("counts", ("words", "users"), 3, key="word", input="correlated"),
            _Op("wide", ("counts",), 4),
            _Op("total", ("wide",), 1, key="word"),
        ),
    )
    problem = problem_from(topology, {"lines[1]": 5.0})
    kinds = {(s.source, s.target): str(s.partitioning) for s in problem.streams}
    assert kinds == {
        ("lines", "words"): "one-to-one",
        ("words", "counts"): "full",
        ("users", "counts"): "full",
        ("counts", "wide"): "full",
        ("wide", "total"): "merge",
    }
    assert problem.operators[0].rates == (1.0, 5.0)
    assert [op.name for op in problem.operators if op.correlated] == ["counts"]
    assert problem.sinks == ("total",)
    with pytest.raises(InvalidInput, match="lines\\[9\\]"):
        problem_from(topology, {"lines[9]": 1.0})


def test_a_key_keeps_its_slice_from_one_operator_to_the_next() -> None:
    """Both divide rows by the same hash, so slice i feeds slice i alone."""
    topology = _Topology(
        (_Source("rows", 2),),
        (
            _Op("sums", ("rows",), 2, key="word"),
            _Op("again", ("sums",), 2, key="word"),
            _Op("more", ("again",), 3, key="word"),
            _Op("other", ("more",), 3, key="day"),
        ),
    )
    problem = problem_from(topology)
    assert [str(s.partitioning) for s in problem.streams] == ["full", "one-to-one", "full", "full"]


def test_rates_must_be_numbers(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"lines[0]": "fast"}')
    with pytest.raises(InvalidInput, match=r"r\.json"):
        load_rates(tmp_path / "r.json")


def test_the_validator_rejects_broken_plans() -> None:
    problem = random_topology(TopologySpec(joins=0.5), seed=3)
    plan = planner("exact")(PlanRequest(problem, problem.task_count // 2))
    assert problems_with(problem, plan) == []
    broken = {
        "not a task": replace(plan, replicas=("X[0]",)),
        "replicated 2 times": replace(plan, replicas=plan.replicas[:1] * 2),
        "exceed the budget": replace(plan, budget=len(plan.replicas) - 1),
        "output fidelity is": replace(plan, output_fidelity=plan.output_fidelity + 0.01),
        "internal completeness is": replace(plan, internal_completeness=0.0),
        "is below the value": replace(plan, upper_bound=plan.output_fidelity - 0.01),
        "called optimal": replace(plan, upper_bound=plan.output_fidelity + 0.01),
        "called infeasible": replace(plan, status=Status.INFEASIBLE),
    }
    for sentence, wrong in broken.items():
        assert any(sentence in found for found in problems_with(problem, wrong)), sentence


@pytest.mark.parametrize("wrong", [{"budget": -1}, {"budget": 1, "time_limit_s": 0.0}])
def test_a_request_must_mean_something(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="cannot be planned"):
        PlanRequest(random_topology(TopologySpec(), seed=1), **wrong)


def test_an_unknown_algorithm_names_the_known_ones() -> None:
    with pytest.raises(InvalidInput) as caught:
        planner("best")
    assert "structure-aware" in caught.value.fix
