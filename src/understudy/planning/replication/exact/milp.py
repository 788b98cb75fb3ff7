"""A mixed-integer linear programme as arrays, and HiGHS behind it.

HiGHS comes with OR-tools (MathOpt) and as highspy; the two packages bring different builds of the same
shared library and cannot be loaded into one process, so whichever is already there is used.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from datetime import timedelta
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
    """`bound` holds for every solution; without `values` none was found, and without a chance -inf."""

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
    if "highspy" in sys.modules:
        return _with_highspy(programme, seconds, gap)
    try:
        from ortools.math_opt.python import mathopt  # noqa: F401
    except ImportError:
        return _with_highspy(programme, seconds, gap)
    return _with_mathopt(programme, seconds, gap)


def _with_mathopt(programme: Programme, seconds: float, gap: float) -> Solution:
    from ortools.math_opt import model_pb2
    from ortools.math_opt.python import mathopt
    from ortools.math_opt.solvers import highs_pb2

    model = model_pb2.ModelProto()
    count, rows = len(programme.objective), len(programme.limits)
    model.variables.ids.extend(range(count))
    model.variables.lower_bounds.extend(np.minimum(programme.lower, programme.upper))
    model.variables.upper_bounds.extend(programme.upper)
    model.variables.integers.extend(programme.integer.tolist())
    model.objective.maximize = True
    used = np.flatnonzero(programme.objective)
    model.objective.linear_coefficients.ids.extend(used)
    model.objective.linear_coefficients.values.extend(programme.objective[used])
    model.linear_constraints.ids.extend(range(rows))
    model.linear_constraints.lower_bounds.extend([-math.inf] * rows)
    model.linear_constraints.upper_bounds.extend(programme.limits)
    order = np.lexsort((programme.column, programme.row))
    matrix = model.linear_constraint_matrix
    matrix.row_ids.extend(programme.row[order])
    matrix.column_ids.extend(programme.column[order])
    matrix.coefficients.extend(programme.coefficient[order])
    wrapped = mathopt.Model.from_model_proto(model)
    parameters = mathopt.SolveParameters(
        time_limit=timedelta(seconds=max(seconds, 0.01)),
        relative_gap_tolerance=0.0,
        absolute_gap_tolerance=max(gap, _TOLERANCE),
        highs=highs_pb2.HighsOptionsProto(
            double_options={
                "mip_feasibility_tolerance": _TOLERANCE,
                "primal_feasibility_tolerance": _TOLERANCE,
            }
        ),
    )
    result = mathopt.solve(wrapped, mathopt.SolverType.HIGHS, params=parameters)
    reason = mathopt.TerminationReason
    if result.termination.reason in (reason.INFEASIBLE, reason.INFEASIBLE_OR_UNBOUNDED):
        return Solution(-math.inf, None)
    bound = result.termination.objective_bounds.dual_bound
    if not result.has_primal_feasible_solution():
        return Solution(bound, None)
    values = np.array(result.variable_values(list(wrapped.variables())))
    price = 0.0
    if not programme.integer.any() and result.has_dual_feasible_solution():
        price = float(result.dual_values(next(iter(wrapped.linear_constraints()))))
    return Solution(max(bound, result.objective_value()), values, price)


def _with_highspy(programme: Programme, seconds: float, gap: float) -> Solution:
    try:
        import highspy
    except ImportError as error:
        raise Unavailable(
            "no HiGHS solver can be loaded",
            why=str(error),
            fix="install the planning extra: pip install 'understudy[planning]'",
        ) from error
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
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(programme.objective), len(programme.limits)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = programme.objective, programme.lower, programme.upper
    lp.row_lower_ = np.full(len(programme.limits), -highspy.kHighsInf)
    lp.row_upper_ = programme.limits
    order = np.lexsort((programme.column, programme.row))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.searchsorted(programme.row[order], np.arange(len(programme.limits) + 1))
    lp.a_matrix_.index_ = programme.column[order]
    lp.a_matrix_.value_ = programme.coefficient[order]
    lp.sense_ = highspy.ObjSense.kMaximize
    mixed = bool(programme.integer.any())
    if mixed:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(i)] for i in programme.integer]
    highs.passModel(lp)
    highs.run()
    status = highs.getModelStatus()
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        return Solution(-math.inf, None)
    info, solution = highs.getInfo(), highs.getSolution()
    value = float(info.objective_function_value)
    bound = float(info.mip_dual_bound) if mixed else value
    if not solution.value_valid:
        return Solution(bound, None)
    price = 0.0 if mixed else float(solution.row_dual[0])
    return Solution(max(bound, value), np.array(solution.col_value), price)
