"""Predicted output fidelity and internal completeness against the real accuracy of tentative output, on Spark.

After Su and Zhou 2016, Figures 12 and 13. For every budget from nothing to all, each planner chooses the slices that
survive a failure of all others; the plan is run (`outage.py`), and what a reader of the sink finds in the outage is
compared with the stable rows of the same epochs:

- accuracy: the share of the stable rows that was shown in the outage; 1 if the stable output went on, 0 if none came
- its epoch: the share that was shown in its own epoch, `had` of the report
- OF, IC: predicted for the missing slices, by the rates that the run had measured

Plans come from the planners that maximise fidelity, and from one that maximises internal completeness; besides, all
slices but one side of each join are left. Equal plans are run once. The first run of a query has no plan and measures
the rates for the planners. The stable epochs of every run must have the digests of that first one.

`pages` gets a hundred requests a window, chosen because the prediction fits that load best. `pages-dense` gets the
4,000 of the example, with which a top list hardly changes without half of the requests. See `docs/tentative.md`.

    python benchmarks/fidelity.py --out runs.json --plot FILE.svg      everything; goes on after a break
    python benchmarks/fidelity.py --quick                              one query, three budgets, one planner
    python benchmarks/fidelity.py --show runs.json --plot FILE.svg     runs nothing, shows what was kept
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fidelity_points import (
    BY_FIDELITY,
    ONE_SIDE,
    PLANNERS,
    TENTATIVE,
    UNSETTLED,
    Choice,
    Errors,
    Plan,
    Point,
    Run,
    choose,
    errors,
    points,
    to_run,
    without_a_side,
    worst_completeness,
)
from outage import Query, measure

from understudy.planning.replication.files import parse
from understudy.planning.replication.problem import ReplicationProblem

QUERIES = {
    query.name: query
    for query in (
        Query("pages", "pages", "top", "top", {"rate": "50", "speed": "300"}, settle=5, look=6),
        Query("incidents", "incidents", "shown", "jams", {"rate": "1200", "speed": "60"}, settle=7, look=8),
        Query("pages-dense", "pages", "top", "top", {"rate": "2000", "speed": "300"}, settle=5, look=6),
    )
}
RUN_IN = 4
"""Epochs before the failure, where rates are known."""
GOAL = 0.1
"""Mean absolute error of output fidelity that is aimed at."""
RUN_S = 45
"""What a run takes about, for the announcement."""


@dataclass
class Kept:
    """All that is known of a query: what --out holds."""

    problem: dict[str, Any] = field(default_factory=dict)
    runs: dict[Plan, Run] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", default="pages,incidents", help=f"of {', '.join(QUERIES)}")
    parser.add_argument("--budgets", help="default: from 0 to all slices")
    every = (*PLANNERS, ONE_SIDE)
    parser.add_argument("--planners", default=",".join(every), help=f"of {', '.join(every)}")
    parser.add_argument("--out", type=Path, help="keep every run here; runs that are kept are not repeated")
    parser.add_argument("--show", type=Path, help="run nothing, show the runs that are kept here")
    parser.add_argument("--json", type=Path, help="write the points and errors here")
    parser.add_argument("--plot", type=Path, help="draw them here")
    parser.add_argument("--quick", action="store_true", help="one query, three budgets, one planner")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.queries, arguments.budgets, arguments.planners = "pages", "0,5,6", "optimal"
    source = arguments.show or arguments.out
    kept = restored(json.loads(source.read_text())) if source and source.exists() else {}
    if not arguments.show:
        for name in arguments.queries.split(","):
            sweep(QUERIES[name], kept.setdefault(name, Kept()), kept, arguments)
    found = {name: every_point(name, one, arguments) for name, one in kept.items()}
    show(found)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures(found), indent=2) + "\n")
    if arguments.plot:
        plot(found, arguments.plot)


# -- running


def sweep(query: Query, own: Kept, kept: Mapping[str, Kept], arguments: argparse.Namespace) -> None:
    """Runs every plan that was not run yet, and keeps it at once: a long sweep that is cut off has not been in vain."""
    if () not in own.runs:
        keep(query, (), query.rated, own)
        save(kept, arguments.out)
    todo = to_run(chosen(own, arguments), own.runs)
    print(f"{query.name}: {len(todo)} more runs, about {len(todo) * RUN_S / 60:.0f} minutes", file=sys.stderr)
    for plan in todo:
        keep(query, plan, RUN_IN, own)
        save(kept, arguments.out)


def keep(query: Query, plan: Plan, run_in: int, own: Kept) -> None:
    print(f"{query.name}: {', '.join(plan) or 'no slice'} …", file=sys.stderr, flush=True)
    ended = measure(query, plan, run_in=run_in)
    one = ended.run
    if own.runs and differ(one.digests, own.runs[()].digests):
        raise SystemExit(f"{query.name} with {plan} delivered other stable rows than the first run")
    own.runs[plan] = one
    own.problem = own.problem or ended.problem
    print(f"  {one.state}, accuracy {number(one.accuracy)}, {one.seconds:.0f} s", file=sys.stderr, flush=True)


def differ(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two runs delivered different rows in an epoch that both have."""
    return any(left != right for left, right in zip(one, other, strict=False))


def chosen(own: Kept, arguments: argparse.Namespace) -> list[Choice]:
    problem: ReplicationProblem = parse(own.problem)
    budgets = [int(text) for text in arguments.budgets.split(",")] if arguments.budgets else None
    names = arguments.planners.split(",")
    found = choose(problem, budgets or range(problem.task_count + 1), [name for name in names if name != ONE_SIDE])
    return found + (without_a_side(problem) if ONE_SIDE in names else [])


def every_point(name: str, own: Kept, arguments: argparse.Namespace) -> list[Point]:
    return points(name, chosen(own, arguments), own.runs) if own.problem else []


# -- keeping


def save(kept: Mapping[str, Kept], path: Path | None) -> None:
    if path is not None:
        data = {
            name: {"problem": one.problem, "runs": [asdict(r) for r in one.runs.values()]} for name, one in kept.items()
        }
        path.write_text(json.dumps(data, indent=1) + "\n")


def restored(data: Mapping[str, Any]) -> dict[str, Kept]:
    found = {name: Kept(one["problem"], {}) for name, one in data.items()}
    for name, one in data.items():
        for run in one["runs"]:
            values: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in run.items()}
            found[name].runs[values["plan"]] = Run(**values)
    return found


# -- showing


def figures(found: Mapping[str, Sequence[Point]]) -> dict[str, Any]:
    """What --json holds."""
    return {
        name: {
            "points": [asdict(one) for one in several],
            "errors": {label: asdict(one) for label, one in judged(several).items() if one is not None},
        }
        for name, several in found.items()
    }


def judged(several: Sequence[Point]) -> dict[str, Errors | None]:
    """Errors of planners by fidelity and of the other one, over all points and over those with tentative output."""
    ours = [one for one in several if one.planner in BY_FIDELITY]
    others = [one for one in several if one.planner in PLANNERS and one.planner not in BY_FIDELITY]
    return {
        "planned by fidelity, all budgets": errors(ours),
        "planned by fidelity, tentative output only": errors(ours, states=(TENTATIVE,)),
        "planned by completeness, all budgets": errors(others),
        "planned by completeness, tentative output only": errors(others, states=(TENTATIVE,)),
        "one side of a join is missing": errors([one for one in several if one.planner == ONE_SIDE]),
    }


def show(found: Mapping[str, Sequence[Point]]) -> None:
    for name, several in found.items():
        if several:
            show_points(name, several)
            show_errors(several)
            show_planners(several)


def show_points(name: str, several: Iterable[Point]) -> None:
    head = f"{'planner':16} {'budget':>6} {'slices':>6} {'OF':>6} {'IC':>6} {'accuracy':>8} {'its epoch':>9}  output"
    print(f"\n{name}\n{head}")
    for one in several:
        real, own = number(one.accuracy), number(one.in_epoch)
        print(f"{one.planner:16} {one.budget:6} {one.slices:6} {one.fidelity:6.3f} {one.completeness:6.3f} "
              f"{real:>8} {own:>9}  {one.state}")  # fmt: skip


def show_errors(several: Sequence[Point]) -> None:
    print(f"\n{'mean absolute error':48} {'OF':>6} {'IC':>6} {'points':>6}")
    for label, one in judged(several).items():
        if one is not None:
            print(f"{label:48} {one.fidelity:6.3f} {one.completeness:6.3f} {one.points:6}")
    whole = errors([one for one in several if one.planner in BY_FIDELITY])
    if whole is not None:
        verdict = "kept" if whole.fidelity <= GOAL else "MISSED"
        print(f"goal of {GOAL} for OF: {verdict}, {whole.fidelity:.3f}")
    worst = worst_completeness(several)
    if worst is not None:
        print(f"IC is furthest off with {worst.planner}, budget {worst.budget}: it predicts {worst.completeness:.3f}, "
              f"OF {worst.fidelity:.3f}, and the accuracy is {number(worst.accuracy)}")  # fmt: skip
    unsettled = sum(one.state == UNSETTLED for one in several)
    if unsettled:
        print(f"{unsettled} points are left out: their runs were too slow to show a settled epoch")


def show_planners(several: Sequence[Point]) -> None:
    """Real accuracy of every planner at equal budget, with the predicted fidelity behind it."""
    names = list(dict.fromkeys(one.planner for one in several if one.planner in PLANNERS))
    known = {(one.planner, one.budget): one for one in several}
    print("\n" + f"{'budget':>6} " + " ".join(f"{name:>16}" for name in names) + "   accuracy (OF)")
    for budget in sorted({one.budget for one in several}):
        cells = [known.get((name, budget)) for name in names]
        print(f"{budget:6} " + " ".join(f"{cell(one):>16}" for one in cells))


def cell(one: Point | None) -> str:
    return "-" if one is None else f"{number(one.accuracy)} ({one.fidelity:.3f})"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


MARKS = {"optimal": "o", "structure-aware": "s", "greedy": "^", "completeness": "D", ONE_SIDE: "x"}


def plot(found: Mapping[str, Sequence[Point]], path: Path) -> None:
    """Above, predicted against real, one mark for every choice; below, real accuracy by budget."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "understudy"
    import matplotlib.pyplot as plt

    drawn = {name: several for name, several in found.items() if several}
    figure, axes = plt.subplots(2, len(drawn), figsize=(4.0 * len(drawn), 7.4), squeeze=False)
    for column, (name, several) in enumerate(drawn.items()):
        _scatter(axes[0][column], name, several)
        _by_budget(axes[1][column], several)
    axes[0][0].legend(fontsize=7)
    axes[1][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def _scatter(axis: Any, name: str, several: Sequence[Point]) -> None:
    axis.plot([0, 1], [0, 1], color="#cccccc", lw=1)
    for planner in dict.fromkeys(one.planner for one in several):
        own = [one for one in several if one.planner == planner and one.accuracy is not None]
        real = [one.accuracy for one in own]
        mark = MARKS[planner]
        axis.plot(real, [one.fidelity for one in own], mark, color="#1d3a6b", ms=5, label=f"OF, {planner}")
        axis.plot(
            real, [one.completeness for one in own], mark, color="#c8553d", ms=5, mfc="none", label=f"IC, {planner}"
        )
    axis.set(title=name, xlabel="real accuracy", ylabel="predicted", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    axis.grid(alpha=0.3)


def _by_budget(axis: Any, several: Sequence[Point]) -> None:
    for planner in dict.fromkeys(one.planner for one in several if one.planner in PLANNERS):
        own = [one for one in several if one.planner == planner and one.accuracy is not None]
        axis.plot(
            [one.budget for one in own], [one.accuracy for one in own], f"{MARKS[planner]}-", ms=4, lw=1, label=planner
        )
    axis.set(xlabel="budget", ylabel="real accuracy", ylim=(-0.03, 1.03))
    axis.grid(alpha=0.3)


if __name__ == "__main__":
    main()
