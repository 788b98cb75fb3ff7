"""The pure parts of the benchmarks of tentative output and plans, with reports and loads made by hand."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from understudy.model.config import DEFAULTS
from understudy.model.report import TentativeEpoch
from understudy.planning.replication.problem import Operator, Partitioning, ReplicationProblem, Stream

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import adapting
import armed
import fidelity
from fidelity_points import (
    Choice,
    Outage,
    Point,
    arranged,
    choose,
    errors,
    fold,
    points,
    state_of,
    to_run,
    without_a_side,
    worst_completeness,
)

JOIN = ReplicationProblem(
    (
        Operator("left", (10.0,)),
        Operator("right", (1.0,)),
        Operator("both", (2.0, 6.0), correlated=True),
        Operator("last", (4.0,)),
    ),
    (
        Stream("left", "both", Partitioning.FULL),
        Stream("right", "both", Partitioning.FULL),
        Stream("both", "last", Partitioning.MERGE),
    ),
)


def told(epoch: int, fidelity: float = 0.5, completeness: float = 0.7, **changes: Any) -> TentativeEpoch:
    usual: dict[str, Any] = {
        "branch": 1,
        "sink": "out",
        "epoch": epoch,
        "at_s": float(epoch),
        "after_failure_s": 1.0,
        "missing": ("both[0]",),
        "rows": 2,
        "fidelity": fidelity,
        "completeness": completeness,
        "corrected_after_s": 5.0,
        "had": 0.5,
        "right": 1.0,
    }
    return TentativeEpoch(**(usual | changes))


def outage(shown: dict[int, list[str]], **changes: Any) -> Outage:
    """Epochs 10 to 13 of an outage that began at epoch 6, each with the two rows a<epoch> and b<epoch>."""
    stable = {epoch: [f"a{epoch}", f"b{epoch}"] for epoch in range(20)}
    usual: dict[str, Any] = {"first": 6, "settled": 10, "until": 14, "stable": stable, "delivered": 6, "forked": True}
    return Outage(**(usual | {"shown": shown} | changes))


def point(accuracy: float | None, fidelity: float = 0.0, completeness: float = 0.0, **changes: Any) -> Point:
    usual: dict[str, Any] = {"query": "q", "planner": "optimal", "budget": 1, "slices": 1, "state": "tentative"}
    numbers = {"accuracy": accuracy, "in_epoch": accuracy, "fidelity": fidelity, "completeness": completeness}
    return Point(**(usual | numbers | changes))


# -- which plans are run


def test_each_planner_chooses_for_each_budget_and_equal_plans_are_run_once() -> None:
    choices = choose(JOIN, range(6), ("optimal", "greedy", "completeness"))
    assert [(one.planner, one.budget) for one in choices[:2]] == [("optimal", 0), ("optimal", 1)]
    assert len(choices) == 18
    by = {(one.planner, one.budget): one for one in choices}
    assert by["optimal", 3].plan == (), "no output survives with three of the five"
    assert by["optimal", 4].plan == ("both[1]", "last[0]", "left[0]", "right[0]")
    assert by["optimal", 4].fidelity == pytest.approx(0.75)
    assert (by["completeness", 3].fidelity, by["completeness", 3].completeness > 0.5) == (0.0, True)
    plans = to_run(choices)
    assert len(plans) == len(set(plans)) < len(choices)
    assert [len(plan) for plan in plans] == sorted(len(plan) for plan in plans)
    assert to_run(choices, done=plans[1:]) == [()]


def test_a_join_is_also_run_without_each_of_its_sides() -> None:
    left, right = without_a_side(JOIN)
    assert left.plan == ("both[0]", "both[1]", "last[0]", "right[0]")
    assert right.plan == ("both[0]", "both[1]", "last[0]", "left[0]")
    assert (right.fidelity, right.budget) == (0.0, 4)
    assert right.completeness > 0.8


def test_slices_of_the_plan_and_sinks_go_to_the_node_that_stays_with_the_fewest_moves() -> None:
    placed = {"in[0]": "node-1", "sum[0]": "node-2", "sum[1]": "node-1", "out[0]": "node-1"}
    tasks = ("in[0]", "sum[0]", "sum[1]")
    assert arranged(placed, tasks, ("in[0]", "sum[1]"), ("node-1", "node-2")) == ("node-2", {})
    assert arranged(placed, tasks, ("in[0]",), ("node-1", "node-2")) == ("node-2", {"sum[1]": "node-2"})
    lost, moves = arranged(placed, tasks, (), ("node-1", "node-2"))
    assert (lost, moves) == ("node-1", {"sum[0]": "node-1", "out[0]": "node-2"})


# -- what a run has shown


def test_settled_tentative_epochs_are_compared_with_the_stable_rows_of_the_same_epochs() -> None:
    shown = {8: ["a8", "b8"], 10: ["a10"], 11: ["a11", "x"], 12: ["a12", "b12"], 13: [], 14: ["b13"]}
    run = fold(
        "q",
        ("left[0]",),
        outage(shown),
        [told(8, 0.9), told(10, 0.4), told(12, 0.6), told(13, 0.2, missing=()), told(12, 0.1)],
    )
    assert (run.state, run.epochs, run.rows) == ("tentative", 4, 8)
    assert run.in_epoch == pytest.approx(4 / 8)
    assert run.accuracy == pytest.approx(5 / 8), "b13 came an epoch later than it is stable"
    assert run.right == pytest.approx(4 / 5), "x is nowhere stable"
    assert run.fidelity == pytest.approx(0.5), "of epochs with missing slices"
    assert run.completeness == pytest.approx(0.7)
    assert run.missing == ("both[0]",)


@pytest.mark.parametrize(
    ("shown", "changes", "state", "accuracy"),
    [
        ({}, {"delivered": 16, "forked": False}, "stable", 1.0),
        ({}, {"delivered": 7, "forked": False}, "nothing", 0.0),
        ({7: ["a7"]}, {}, "unsettled", None),
        ({10: []}, {"stable": {}}, "unsettled", None),
        ({10: [], 11: []}, {}, "tentative", 0.0),
    ],
)
def test_output_that_goes_on_counts_as_right_and_output_that_stops_as_wrong(
    shown: dict[int, list[str]], changes: dict[str, Any], state: str, accuracy: float | None
) -> None:
    seen = outage(shown, **changes)
    run = fold("q", (), seen, [])
    assert (run.state, run.accuracy, run.in_epoch) == (state, accuracy, accuracy)
    assert run.fidelity is None
    assert state_of(seen) == state or state == "unsettled"


# -- predictions beside what happened


def test_a_point_has_the_predictions_of_its_run_or_else_those_of_its_plan() -> None:
    shown = {epoch: [f"a{epoch}"] for epoch in range(10, 14)}
    runs = {
        ("a",): fold("q", ("a",), outage(shown), [told(10)]),
        (): fold("q", (), outage({}, forked=False), []),
    }
    choices = [Choice("optimal", 1, ("a",), 0.3, 0.4), Choice("greedy", 1, ("a",), 0.3, 0.4)]
    choices += [Choice("greedy", 0, (), 0.0, 0.1), Choice("greedy", 2, ("b",), 0.0, 0.1)]
    found = points("q", choices, runs)
    assert [(one.planner, one.budget, one.fidelity, one.completeness) for one in found] == [
        ("optimal", 1, 0.5, 0.7),
        ("greedy", 1, 0.5, 0.7),
        ("greedy", 0, 0.0, 0.1),
    ]
    assert [one.accuracy for one in found] == [0.5, 0.5, 0.0]


def test_errors_are_means_over_points_that_could_be_measured() -> None:
    several = [point(0.5, 0.4, 0.9), point(0.0, 0.1, 0.6, state="nothing"), point(None, 1.0, state="unsettled")]
    both = errors(several)
    assert both is not None
    assert both.fidelity == pytest.approx(0.1)
    assert both.completeness == pytest.approx(0.5)
    assert both.points == 2
    tentative = errors(several, states=("tentative",))
    assert tentative is not None
    assert tentative.points == 1
    assert errors([]) is None
    assert worst_completeness(several) == several[1]
    assert worst_completeness([]) is None


def test_runs_that_were_kept_are_found_again_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = {epoch: [f"a{epoch}"] for epoch in range(10, 14)}
    plan = ("both[1]", "last[0]", "left[0]", "right[0]")
    run = fold("join", plan, outage(shown), [told(10, 0.75)])
    problem = {
        "operators": [
            {"name": "left", "tasks": [10]},
            {"name": "right", "tasks": [1]},
            {"name": "both", "tasks": [2, 6], "input": "correlated"},
            {"name": "last", "tasks": [4]},
        ],
        "streams": [
            {"from": "left", "to": "both", "partitioning": "full"},
            {"from": "right", "to": "both", "partitioning": "full"},
            {"from": "both", "to": "last", "partitioning": "merge"},
        ],
    }
    kept = {"join": fidelity.Kept(problem, {plan: run})}
    fidelity.save(kept, tmp_path / "runs.json")
    assert fidelity.restored(json.loads((tmp_path / "runs.json").read_text())) == kept
    arguments = argparse.Namespace(budgets="4", planners="optimal,greedy,one side")
    found = {"join": fidelity.every_point("join", kept["join"], arguments)}
    fidelity.show(found)
    assert "0.500 (0.750)" in capsys.readouterr().out
    assert fidelity.figures(found)["join"]["points"][0] == asdict(found["join"][0])


def test_stable_rows_are_compared_as_far_as_both_runs_went() -> None:
    assert not fidelity.differ(("a", "b"), ("a", "b", "c"))
    assert fidelity.differ(("a", "x"), ("a", "b", "c"))


# -- adapting


def test_a_plan_follows_the_load_only_where_that_gains_enough() -> None:
    """First the left half of the tree has more to do, then the right one, then it is nearly even."""
    layout = adapting.layout_of(adapting.APP)
    left, right, even = (3.0, 3.0, 1.0, 1.0), (1.0, 1.0, 3.0, 3.0), (1.05, 1.05, 1.0, 1.0)
    trace = adapting.Trace("t", "by hand", [left] * 13 + [right] * 4 + [even] * 3)
    found = adapting.replay(trace, 6, layout, DEFAULTS.plan)
    assert found.changes == 1
    assert found.curves["fixed"][12:15] == (0.75, 0.25, 0.25)
    assert found.curves["adapting"][12:15] == (0.75, 0.25, 0.75), "known one count later"
    assert found.fixed < found.adapting < found.bound
    assert all(one < 0.5 for one in found.curves["adapting"][-3:]), "the last gain is below the threshold"


def test_missing_traces_are_replaced_by_shapes_that_say_so(tmp_path: Path) -> None:
    arguments = argparse.Namespace(days=1, data=tmp_path, seed=3)
    assert adapting.messages(arguments).origin == "seeded bursts (seed 3)"
    assert adapting.messages(arguments).loads == adapting.messages(arguments).loads
    assert adapting.regions(arguments).origin == "the shape Diurnal"
    assert len(adapting.regions(arguments).loads) == adapting.DAY


# -- armed


def test_the_ratio_is_that_of_all_processes_and_the_median_is_judged() -> None:
    pair = armed.Pair(armed.Used(0.9, 0.1), armed.Used(0.9, 0.12))
    assert pair.ratio == pytest.approx(1.02)
    assert "1.010 of plain (from 0.990 to 1.050" in armed.verdict([0.99, 1.05, 1.01])
    assert armed.verdict([1.01]).endswith("goal of 1.02: kept")
    assert armed.verdict([1.04, 1.03]).endswith("MISSED")


def test_cpu_is_read_at_the_first_warm_epoch_and_at_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    read = iter([armed.Used(10.0, 1.0), armed.Used(16.0, 1.6)])
    monkeypatch.setattr(armed, "used_by_children", lambda: next(read))
    meter = armed.Meter(4, 10)
    for epoch in (3, 4, 4, 5, 9, 10, 10, 11):
        meter.see(argparse.Namespace(epoch=epoch))  # type: ignore[arg-type]
    assert meter.per_epoch().nodes == pytest.approx(1.0)
    assert meter.per_epoch().manager == pytest.approx(0.1)
    with pytest.raises(SystemExit, match="more --epochs"):
        armed.Meter(0, 5).per_epoch()
