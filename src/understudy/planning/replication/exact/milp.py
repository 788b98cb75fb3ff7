"""A mixed-integer linear programme as arrays, and HiGHS behind it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.errors import Unavailable

if TYPE_CHECKING:
    from understudy.planning.replication.flows import Floats, Ints

_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Programme:
    """Maximise objective·x with rows·x <= limits and lower <= x <= upper."""

    objective: Floats
    lower: Floats
    upper: Floats
    integer: np.ndarray[Any, np.dtype[np.bool_]]
    row: Ints
    column: Ints
    coefficient: Floats
    limits: Floats


@dataclass(frozen=True, eq=False)
class Solution:
    """`bound` holds for every solution; -inf when there is none. `values` may be missing all the same."""

    bound: float
    values: Floats | None
    budget_price: float = 0.0  # dual value of row 0, for programmes without integers

    @property
    def infeasible(self) -> bool:
        return self.bound == -math.inf


def maximise(programme: Programme, *, seconds: float, gap: float = 0.0) -> Solution:
    """`gap` is the absolute difference between bound and value at which to stop."""
    if np.any(programme.lower > programme.upper + _TOLERANCE):
        return Solution(-math.inf, None)
    highspy = _solver()
    highs = highspy.Highs()
    highs.silent()
    for option, value in {
        "time_limit": max(seconds, 0.01),
        "mip_rel_gap": 0.0,
        "mip_abs_gap": max(gap, _TOLERANCE),
        "mip_feasibility_tolerance": _TOLERANCE,
        "primal_feasibility_tolerance": _TOLERANCE,
    }.items():
        highs.setOptionValue(option, value)
    highs.passModel(_lp(highspy, programme))
    highs.run()
    return _solution(highspy, highs, mixed=bool(programme.integer.any()))


def _solver() -> Any:
    try:
        import highspy
    except ImportError as error:
        raise Unavailable(
            "the HiGHS solver cannot be loaded",
            why=f"{error} (OR-tools brings another build of it: both in one process do not work)",
            fix="install the planning extra (pip install 'understudy[planning]') and do not import ortools",
        ) from error
    return highspy


def _lp(highspy: Any, programme: Programme) -> Any:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(programme.objective), len(programme.limits)
    lp.col_cost_ = programme.objective
    lp.col_lower_, lp.col_upper_ = np.minimum(programme.lower, programme.upper), programme.upper
    lp.row_lower_ = np.full(len(programme.limits), -highspy.kHighsInf)
    lp.row_upper_ = programme.limits
    order = np.lexsort((programme.column, programme.row))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.searchsorted(programme.row[order], np.arange(len(programme.limits) + 1))
    lp.a_matrix_.index_ = programme.column[order]
    lp.a_matrix_.value_ = programme.coefficient[order]
    lp.sense_ = highspy.ObjSense.kMaximize
    if programme.integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(i)] for i in programme.integer]
    return lp


def _solution(highspy: Any, highs: Any, *, mixed: bool) -> Solution:
    status = highs.getModelStatus()
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        return Solution(-math.inf, None)
    info, solution = highs.getInfo(), highs.getSolution()
    finished = status == highspy.HighsModelStatus.kOptimal
    value = float(info.objective_function_value)
    if mixed:
        bound = float(info.mip_dual_bound)
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    else:
        bound, found = (value if finished else math.inf), finished
    if not found:
        return Solution(bound, None)
    price = 0.0 if mixed else float(solution.row_dual[0])
    return Solution(max(bound, value), np.array(solution.col_value), price)
