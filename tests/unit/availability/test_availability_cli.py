from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy.cli.availability_run import Request
from understudy.cli.main import app
from understudy.errors import InvalidInput

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "availability" / "stocks.yaml")


def test_plan_as_json() -> None:
    result = CliRunner().invoke(app, ["availability", "plan", EXAMPLE, "--placement", "interleaved", "--json"])
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["status"] == "feasible"
    assert content["availability"]["after"] > content["availability"]["before"]
    assert content["availability"]["exact"]
    domains = [{host[0] for host in operator["hosts"]} for operator in content["operators"]]
    counts = [len(operator["hosts"]) for operator in content["operators"]]
    assert [len(domain) for domain in domains] == counts, "copies of an operator are in different racks"


def test_plan_as_tables_names_what_does_not_fit() -> None:
    arguments = ["availability", "plan", EXAMPLE, "--spare", "9", "--level", "2"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "does not fit: replica 2 of sap-average.ticks" in result.stdout


def test_optimise_both_ways() -> None:
    quick = ["--rounds", "2", "--generations", "2", "--json"]
    result = CliRunner().invoke(app, ["availability", "optimise", EXAMPLE, "--cost-limit", "0.6", *quick])
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    best = next(answer for answer in content["answers"] if answer["method"] == content["best"])
    assert best["cost"] <= 0.6
    assert best["availability"] <= content["bound"]
    result = CliRunner().invoke(app, ["availability", "optimise", EXAMPLE, "--target", "0.99", *quick])
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert all(answer["availability"] >= 0.99 for answer in content["answers"])
    assert all(answer["cost"] >= content["bound"] - 1e-9 for answer in content["answers"])


def test_optimise_as_tables() -> None:
    arguments = [
        "availability",
        "optimise",
        EXAMPLE,
        "--target",
        "0.9999",
        "--rounds",
        "1",
        "--generations",
        "1",
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "no placement can reach the target" in result.stdout


def request(**changes: object) -> Request:
    values: dict[str, object] = {
        "hosts": 10,
        "load": 10.0,
        "spare": (5.0,),
        "crash": (0.02, 0.01),
        "heuristics": ("random", "full"),
        "placements": ("first-fit",),
        "selection": "simple",
        "level": 1,
        "runs": 3,
        "seed": 1,
    }
    return Request(**(values | changes))  # type: ignore[arg-type]


def test_full_is_product_with_as_much_spare_as_load() -> None:
    experiment = request().experiment()
    assert [(s.heuristic, s.spare) for s in experiment.strategies] == [("random", 5.0), ("product", 10.0)]
    assert experiment.crash == (0.01, 0.02)


@pytest.mark.parametrize(
    "changes",
    [
        {"heuristics": ("best",)},
        {"heuristics": ()},
        {"placements": ("worst",)},
        {"selection": "none"},
        {"hosts": 0},
        {"runs": 0},
        {"load": 0.0},
        {"spare": (-1.0,)},
        {"crash": (2.0,)},
        {"crash": ()},
    ],
)
def test_a_simulation_that_means_nothing_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        request(**changes).experiment()


def test_numbers_are_numbers() -> None:
    result = CliRunner().invoke(app, ["availability", "simulate", "--crash", "0.01,often"])
    assert result.exit_code == 2
    assert "'often' is none" in result.stderr
