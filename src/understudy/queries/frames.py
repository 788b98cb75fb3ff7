"""The edge to PySpark: what a plan does with streaming DataFrames. Sequences are in `sequences.py`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from understudy.queries import syntax as s
from understudy.queries.functions import FUNCTIONS
from understudy.queries.places import Span, Text
from understudy.queries.plans import Aggregation, Joining, Output, Plan, Selection, Side, Time

Names = Callable[[s.Column], Column]
"""Which column of a DataFrame a name means."""
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "AND": operator.and_,
    "OR": operator.or_,
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "LIKE": F.like,
}
_WINDOW = "_window"


def build(plan: Plan, inputs: Sequence[DataFrame]) -> DataFrame:
    """The output of a query over these inputs."""
    work = plan.work
    if isinstance(work, Selection):
        return selected(plan.text, filtered(plan.text, inputs[0], work.where, named), work.outputs, named)
    if isinstance(work, Aggregation):
        return _aggregated(plan, work, inputs[0])
    if isinstance(work, Joining):
        return _joined(plan, work, inputs)
    from understudy.queries.sequences import matches

    return matches(plan, work, inputs)


def named(column: s.Column) -> Column:
    """The column of that name, qualified as it is."""
    return F.col(".".join(quoted(part) for part in (column.stream, column.name) if part is not None))


def quoted(name: str) -> str:
    """A name as Spark reads it, whatever its letters."""
    return "`" + name.replace("`", "``") + "`"


def column(expression: s.Node, names: Names) -> Column:
    """An expression in Spark's terms."""
    if isinstance(expression, s.Column):
        return names(expression)
    if isinstance(expression, s.Literal):
        return F.lit(expression.value)
    below = [column(child, names) for child in s.children(expression) if not isinstance(child, s.Branch)]
    if isinstance(expression, s.Call):
        if expression.name == "count" and not below:
            return F.count(F.lit(1))
        return F.call_function(FUNCTIONS[expression.name].spark, *below)
    if isinstance(expression, s.Binary):
        found: Column = _BINARY[expression.operator](*below)
        return found
    if isinstance(expression, s.Unary):
        return ~below[0] if expression.operator == "NOT" else -below[0]
    if isinstance(expression, s.Cast):
        return below[0].cast(expression.type)
    if isinstance(expression, s.Case):
        return _case(expression, names)
    return _condition(expression, below)


def _condition(expression: s.Node, below: Sequence[Column]) -> Column:
    if isinstance(expression, s.Missing):
        return below[0].isNotNull() if expression.negated else below[0].isNull()
    if isinstance(expression, s.Between):
        found = below[0].between(below[1], below[2])
    elif isinstance(expression, s.Among):
        found = below[0].isin(*below[1:])
    else:
        raise TypeError(f"{type(expression).__name__} is not an expression")
    return ~found if expression.negated else found


def _case(expression: s.Case, names: Names) -> Column:
    first, *others = expression.branches
    found = F.when(column(first.condition, names), column(first.value, names))
    for branch in others:
        found = found.when(column(branch.condition, names), column(branch.value, names))
    return found if expression.otherwise is None else found.otherwise(column(expression.otherwise, names))


def filtered(text: Text, frame: DataFrame, condition: s.Expression | None, names: Names) -> DataFrame:
    if condition is None:
        return frame
    with pointing(text, condition.span):
        return frame.where(column(condition, names))


def selected(text: Text, frame: DataFrame, outputs: Sequence[Output], names: Names) -> DataFrame:
    """These outputs and no other columns; all columns for no outputs."""
    if not outputs:
        return frame
    made = [column(one.value, names).alias(one.name) for one in outputs]
    try:
        return frame.select(*made)
    except PySparkException:
        for output, one in zip(outputs, made, strict=True):
            with pointing(text, output.value.span):
                frame.select(one)
        raise


def with_time(text: Text, frame: DataFrame, time: Time, span: Span) -> DataFrame:
    with pointing(text, span):
        return frame.withWatermark(quoted(time.column), f"{time.late_ms} milliseconds")


@contextmanager
def pointing(text: Text, span: Span) -> Iterator[None]:
    """What Spark refuses is said at the place in the text."""
    try:
        yield
    except PySparkException as error:
        reason = (str(error).strip().splitlines() or ["without a word"])[0]
        raise text.mistake(
            span,
            "Spark cannot compute this",
            why=reason[:400],
            fix="compare and combine values of one kind; CAST(price AS double) changes the kind",
        ) from error


def _aggregated(plan: Plan, work: Aggregation, frame: DataFrame) -> DataFrame:
    text, within = plan.text, plan.query.timing.within
    groups = [column(one.value, named).alias(one.name) for one in work.groups]
    if work.time is not None and work.window is not None and within is not None:
        frame = with_time(text, frame, work.time, within.span)
        length, every = (f"{ms} milliseconds" for ms in (work.window.length_ms, work.window.every_ms))
        groups.insert(0, F.window(F.col(quoted(work.time.column)), length, every).alias(_WINDOW))
    frame = filtered(text, frame, work.where, named)
    # Spark groups for at least one aggregate.
    counted = work.aggregates or (Output("_n", s.Call("count", ())),)
    made = [column(one.value, named).alias(one.name) for one in counted]
    with pointing(text, plan.query.span):
        try:
            found = frame.groupBy(*groups).agg(*made)
        except PySparkException:
            _point_at_cause(text, frame, work)
            raise
    return selected(text, filtered(text, found, work.having, _in_group), work.outputs, _in_group)


def _point_at_cause(text: Text, frame: DataFrame, work: Aggregation) -> None:
    """Tries every group and aggregate alone; the one that fails raises."""
    for group in work.groups:
        with pointing(text, group.value.span):
            frame.select(column(group.value, named))
    for aggregate in work.aggregates:
        with pointing(text, aggregate.value.span):
            frame.groupBy().agg(column(aggregate.value, named))


def _in_group(one: s.Column) -> Column:
    """Groups and aggregates have names of their own; the window is a struct."""
    return F.col(f"{_WINDOW}.{one.name.removeprefix('window_')}") if one.name.startswith("window_") else F.col(one.name)


def _joined(plan: Plan, work: Joining, inputs: Sequence[DataFrame]) -> DataFrame:
    text, span = plan.text, plan.query.source.span

    def side(one: Side) -> DataFrame:
        return with_time(text, inputs[one.input], one.time, span).alias(one.alias)

    left, right = (named(s.Column(one.time.column, one.alias)) for one in (work.left, work.right))
    bound = F.expr(f"INTERVAL {work.within_ms} MILLISECONDS")
    near = (right >= left - bound) & (right <= left + bound)
    with pointing(text, work.on.span):
        kind = "inner" if work.kind == "inner" else "left_outer"
        pairs = side(work.left).join(side(work.right), column(work.on, named) & near, kind)
    return selected(text, filtered(text, pairs, work.where, named), work.outputs, named)
