"""The planning verbs of the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy.cli.main import app

PROBLEM = {
    "operators": [
        {"name": "O1", "tasks": [1, 2]},
        {"name": "O2", "tasks": [3, 2]},
        {"name": "O3", "tasks": [4.0], "input": "correlated"},
    ],
    "streams": [
        {"from": "O1", "to": "O3", "partitioning": "merge"},
        {"from": "O2", "to": "O3", "partitioning": "merge"},
    ],
}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(PROBLEM))
    return str(path)


def _run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def test_plan_prints_the_promised_fields(file: str) -> None:
    data = json.loads(_run("plan", file, "--budget", "3", "--json"))
    assert {"algorithm", "budget", "status", "replicas", "output_fidelity", "internal_completeness"} <= set(data)
    assert {"upper_bound", "seconds"} <= set(data)
    assert data["algorithm"] == "exact"
    assert data["status"] == "optimal"
    assert data["replicas"] == ["O1[1]", "O2[0]", "O3[0]"]
    assert data["output_fidelity"] == pytest.approx(0.4)


@pytest.mark.parametrize("name", ["exact", "dynamic", "structure-aware", "greedy", "random"])
def test_plan_knows_every_algorithm_and_metric(file: str, name: str) -> None:
    arguments = ("plan", file, "--budget", "3", "--algorithm", name, "--metric", "completeness")
    assert json.loads(_run(*arguments, "--json"))["algorithm"] == name
    assert "internal completeness" in _run(*arguments)


def test_fidelity_of_failed_and_of_replicated_tasks(file: str) -> None:
    failed = json.loads(_run("fidelity", file, "--failed", "O2[1]", "--json"))
    rest = json.loads(_run("fidelity", file, "--replicated", "O1[0],O1[1],O2[0],O3[0]", "--json"))
    assert failed == rest
    assert failed["loss"]["O3[0]"] == pytest.approx(0.4)
    assert "output fidelity" in _run("fidelity", file, "--failed", "O2[1]")
    _run("fidelity", file, code=2)
    _run("fidelity", file, "--failed", "O9[0]", code=2)


def test_mc_trees_are_counted_and_listed(file: str) -> None:
    data = json.loads(_run("mc-trees", file, "--list", "2", "--json"))
    assert data["count"] == 4
    assert data["trees"] == [["O1[0]", "O2[0]", "O3[0]"], ["O1[0]", "O2[1]", "O3[0]"]]
    assert "4 MC-trees" in _run("mc-trees", file)


def test_plan_compare_tabulates_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "curves.svg"
    spec = "operators=3-4,parallelism=1-3"
    text = _run("plan-compare", "--topologies", "2", "--spec", spec, "--plot", str(picture), "--json")
    rows = json.loads(text[text.index("{") :])["rows"]
    assert {row["algorithm"] for row in rows} >= {"exact", "structure-aware", "greedy", "random"}
    assert picture.read_text().startswith("<?xml")


def test_an_unreadable_file_is_three_lines_and_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "problem.json"
    path.write_text("{")
    _run("plan", str(path), "--budget", "1", code=2)


WORD_COUNT = str(Path(__file__).parents[2] / "examples" / "wordcount.py")


def test_a_budget_below_the_smallest_tree_says_what_would_do() -> None:
    text = _run("plan", WORD_COUNT, "--budget", "2")
    assert "the smallest useful plan needs 4" in text
    assert "--budget 4" in text
    assert json.loads(_run("plan", WORD_COUNT, "--budget", "2", "--json"))["smallest_useful_budget"] == 4
    assert "smallest useful" not in _run("plan", WORD_COUNT, "--budget", "4")
    enough = json.loads(_run("plan", WORD_COUNT, "--budget", "4", "--json"))
    assert enough["output_fidelity"] > 0
    assert enough["smallest_useful_budget"] is None
