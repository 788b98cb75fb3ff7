"""Plans and comparisons as JSON content and as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from understudy.planning.availability.optimise import Answer, Comparison
    from understudy.planning.availability.placement import Cluster, Copies
    from understudy.planning.availability.plan import Plan
    from understudy.planning.availability.workload import Workload


def plan_content(plan: Plan) -> dict[str, Any]:
    low, high = plan.after.interval
    return {
        "status": plan.status.value,
        "replica_load": plan.selected.used,
        "cost": plan.cost,
        "colours": plan.placed.colours,
        "note": plan.placed.note,
        "unplaced": [str(unplaced) for unplaced in plan.placed.unplaced],
        "availability": {
            "before": plan.before.mean,
            "after": plan.after.mean,
            "low": low,
            "high": high,
            "exact": plan.after.exact,
            "queries": dict(zip(plan.workload.queries, plan.after.queries.tolist(), strict=True)),
        },
        "operators": _operators(plan.workload, plan.cluster, plan.placed.copies),
    }


def comparison_content(compared: Comparison) -> dict[str, Any]:
    problem = compared.problem
    limit = None
    if compared.bound is not None and not compared.bound.unreachable:
        limit = compared.bound.value
    return {
        "cost_limit": problem.cost_limit,
        "target": problem.target,
        "bound": limit,
        "unreachable": compared.bound is not None and compared.bound.unreachable,
        "best": compared.best.method,
        "answers": [_answer(answer) for answer in compared.answers],
        "operators": _operators(problem.workload, problem.cluster, compared.best.copies),
    }


def show_plan(plan: Plan) -> None:
    console = Console()
    replicated = sum(len(hosts) > 1 for hosts in plan.placed.copies)
    console.print(_copies_table(plan.workload, plan.cluster, plan.placed.copies))
    table = Table(title="availability")
    for column in ("query", "primaries alone", "with replicas"):
        table.add_column(column, justify="left" if column == "query" else "right")
    rows = zip(plan.workload.queries, plan.before.queries, plan.after.queries, strict=True)
    for name, before, after in rows:
        table.add_row(name, f"{100 * before:.4f} %", f"{100 * after:.4f} %")
    table.add_row("all queries", f"{100 * plan.before.mean:.4f} %", f"{100 * plan.after.mean:.4f} %")
    console.print(table)
    kind = "exact" if plan.after.exact else "sampled, 95 % interval {:.4%} to {:.4%}".format(*plan.after.interval)
    console.print(
        f"{replicated} of {len(plan.placed.copies)} operators replicated, replica load "
        f"{plan.selected.used:.4g}, cost {plan.cost:.4g}; availability is {kind}",
        highlight=False,
    )
    if plan.placed.note:
        console.print(plan.placed.note, highlight=False)
    for unplaced in plan.placed.unplaced:
        console.print(f"does not fit: {unplaced}", style="red", markup=False, highlight=False)


def show_comparison(compared: Comparison) -> None:
    console = Console()
    console.print(_copies_table(compared.problem.workload, compared.problem.cluster, compared.best.copies))
    table = Table(title="methods")
    for column in ("method", "status", "availability", "cost", "seconds"):
        table.add_column(column, justify="right" if column in ("availability", "cost", "seconds") else "left")
    for answer in compared.answers:
        table.add_row(
            answer.method,
            answer.status.value,
            f"{100 * answer.availability:.4f} %",
            f"{answer.cost:.4f}",
            f"{answer.seconds:.2f}",
        )
    console.print(table)
    console.print(_bound_line(compared), highlight=False)


def _bound_line(compared: Comparison) -> str:
    if compared.bound is None:
        return "no bound: HiGHS is not installed (understudy[planning]) or found none in time"
    if compared.bound.unreachable:
        return "no placement can reach the target: even the relaxed problem misses it"
    if compared.problem.cost_limit is not None:
        return f"no placement within the limit can reach more than {100 * compared.bound.value:.4f} %"
    return f"no placement that reaches the target can cost less than {compared.bound.value:.4f}"


def _copies_table(workload: Workload, cluster: Cluster, copies: Copies) -> Table:
    table = Table(title="operators")
    for column in ("operator", "queries", "load", "primary", "replicas"):
        table.add_column(column)
    for operator, hosts in enumerate(copies):
        names = [cluster.hosts[host].name for host in hosts]
        table.add_row(
            workload.operators[operator],
            str(workload.degree[operator]),
            f"{workload.load[operator]:.4g}",
            names[0] if names else "–",
            ", ".join(names[1:]) or "–",
        )
    return table


def _operators(workload: Workload, cluster: Cluster, copies: Copies) -> list[dict[str, Any]]:
    return [
        {
            "name": workload.operators[operator],
            "load": float(workload.load[operator]),
            "network": float(workload.network[operator]),
            "hosts": [cluster.hosts[host].name for host in hosts],
        }
        for operator, hosts in enumerate(copies)
    ]


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "method": answer.method,
        "status": answer.status.value,
        "availability": answer.availability,
        "cost": answer.cost,
        "seconds": answer.seconds,
        "note": answer.note,
    }
