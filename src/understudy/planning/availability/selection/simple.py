"""Simple operator selection (Grüneberger et al. 2013, §3.2.1): by importance until the spare load is used.

`stepwise` gives every operator one replica before any gets a second; `at_once` gives the chosen level to the
most important ones and leaves nothing for the rest. With a query-level rating whole queries are taken, and
single operators only with what is left over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from understudy.planning.availability.selection.selected import SLACK, Selected, descending, fill

if TYPE_CHECKING:
    from understudy.planning.availability.importance import Rating
    from understudy.planning.availability.workload import Floats, Workload


def stepwise(workload: Workload, rating: Rating, spare: float, level: int) -> Selected:
    levels = np.zeros(len(workload.operators), dtype=np.int64)
    used = 0.0
    for _ in range(level):
        taken, load = _pick(workload, rating, spare - used, 1)
        levels[taken] += 1
        used += load
        if len(taken) < len(levels):
            break
    return Selected(levels, used)


def at_once(workload: Workload, rating: Rating, spare: float, level: int) -> Selected:
    levels = np.zeros(len(workload.operators), dtype=np.int64)
    taken, used = _pick(workload, rating, spare, level)
    levels[taken] = level
    return Selected(levels, used)


def _pick(workload: Workload, rating: Rating, spare: float, copies: int) -> tuple[list[int], float]:
    if rating.queries is None:
        return fill(descending(rating.operators), workload.load, spare, copies)
    whole, used = _whole_queries(workload, rating.queries, spare, copies)
    order = descending(rating.operators)
    rest = order[~np.isin(order, list(whole))]
    single, more = fill(rest, workload.load, spare - used, copies)
    return [*whole, *single], used + more


def _whole_queries(workload: Workload, importance: Floats, spare: float, copies: int) -> tuple[dict[int, None], float]:
    """A query pays only for the operators that no earlier query has paid for."""
    taken: dict[int, None] = {}
    used = 0.0
    load = workload.load.tolist()
    for query in descending(importance).tolist():
        missing = [operator for operator in workload.by_query[query] if operator not in taken]
        weight = copies * sum(load[operator] for operator in missing)
        if used + weight <= spare + SLACK:
            taken.update(dict.fromkeys(missing))
            used += weight
    return taken, used
