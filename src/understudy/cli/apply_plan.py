"""`understudy plan --apply`: other slices of a running system get working secondaries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from understudy.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from understudy.model.replication import ReplicationState
    from understudy.planning.replication.plan import ReplicationPlan
    from understudy.planning.replication.problem import ReplicationProblem
    from understudy.runtime.client import Client


def running(remote: Client, app: Path) -> ReplicationState:
    """What the manager knows about the run; raises if it is another application or no data flows yet."""
    from understudy.model.replication import ReplicationState
    from understudy.runtime.application import load

    state = ReplicationState.model_validate_json(remote.get("/api/v1/replication"))
    if app.suffix != ".py" or load(app).name != state.app:
        raise InvalidInput(
            f"{app} is not the application that runs",
            why=f"the manager at {remote.url} runs '{state.app}'",
            fix="name its file, or the run with --home or --url",
        )
    return state


def problem_of(state: ReplicationState) -> ReplicationProblem:
    """The slices that run, with the rates that were measured."""
    from understudy.planning.replication.files import parse

    return parse(state.problem, place="the running system")


def apply(remote: Client, state: ReplicationState, result: ReplicationPlan, *, yes: bool, as_json: bool) -> None:
    """Shows what the plan changes, asks, and hands it to the manager."""
    from rich.console import Console

    if not as_json:
        Console(highlight=False).print(difference(state, result))
    if not yes:
        typer.confirm("apply this plan?", abort=True)
    body = {"budget": result.budget, "slices": list(result.replicas), "algorithm": result.algorithm}
    answer = remote.post("/api/v1/replication", body)
    print(json.dumps(answer) if as_json else "applied; 'understudy events --follow' shows how it is carried out")


def difference(state: ReplicationState, result: ReplicationPlan) -> Table:
    """One row for every slice that is planned now or shall be."""
    from rich.table import Table
    from rich.text import Text

    before = [str(one) for one in state.plan.slices] if state.plan else []
    caption = f"predicted output fidelity {fidelity_now(state, before):.3f} now, {result.output_fidelity:.3f} planned"
    table = Table("slice", "now", "planned", caption=caption)
    working = {name for name, scheme in state.schemes.items() if scheme in ("active_standby", "active_replication")}
    for name in problem_of(state).tasks:
        if name in before or name in result.replicas or name in working:
            now, after = _scheme(name, state, name in before), _after(name, state, name in result.replicas)
            table.add_row(Text(name), now, after, style="bold" if now != after else "")
    return table


def fidelity_now(state: ReplicationState, planned: list[str]) -> float:
    """Of the slices that the present plan names, by the rates of now."""
    from understudy.planning.replication.metrics import Metrics

    metrics = Metrics(problem_of(state))
    numbers = metrics.problem.task_numbers
    return metrics.output_fidelity(metrics.alive([numbers[name] for name in planned if name in numbers]))


def _scheme(name: str, state: ReplicationState, planned: bool) -> str:
    """A slice of a source has no scheme: all that a plan does for it is to recover it first."""
    return state.schemes.get(name, "recovered first" if planned else "-")


def _after(name: str, state: ReplicationState, planned: bool) -> str:
    if name not in state.schemes:
        return "recovered first" if planned else "-"
    return str(state.scheme) if planned else "as its recovery asks, passive"
