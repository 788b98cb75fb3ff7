"""Reads an analysed Spark plan into values that can be decided about without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from understudy.model.query_plan import PlanNode, Term
from understudy.stream import frames

RELATION = "StreamingRelationV2"
_ALL_ROWS = ("GlobalLimit",)
_EQUAL = ("EqualTo", "EqualNullSafe")


def read(plan: Any, inputs: int) -> PlanNode:
    """A plan of an operator with so many inputs."""
    children = tuple(read(child, inputs) for child in seq(plan.children()))
    kind = plan.getClass().getSimpleName()
    streaming = bool(plan.isStreaming())
    output = list(seq(plan.output()))
    joins = kind == "Join" and all(bool(child.isStreaming()) for child in seq(plan.children()))
    return PlanNode(
        name=kind,
        output=tuple(_number(column) for column in output),
        children=children,
        base=_base(output, inputs) if kind == RELATION else {},
        made=dict(_made(plan, kind, inputs)),
        groups=_groups(plan, kind) if streaming else None,
        equal=tuple(_equal(plan, kind)),
        joins=joins,
        union=kind == "Union",
    )


def seq(scala: Any) -> Iterator[Any]:
    """The items of a Scala sequence."""
    for position in range(scala.size()):
        yield scala.apply(position)


def _number(column: Any) -> int:
    return int(column.exprId().id())


def _base(output: Sequence[Any], inputs: int) -> dict[int, tuple[int, str]]:
    own = [column for column in output if inputs == 1 or not frames.is_tag(column.name())]
    return {_number(column): frames.input_column(column.name(), inputs) for column in own}


def _made(plan: Any, kind: str, inputs: int) -> Iterator[tuple[int, frozenset[int]]]:
    if kind == RELATION and inputs > 1:
        # The tag that tells inputs apart depends on no column.
        yield from ((_number(one), frozenset()) for one in seq(plan.output()) if frames.is_tag(one.name()))
    for expression in seq(plan.expressions()):
        if expression.getClass().getSimpleName() == "Alias":
            yield _number(expression), _reads(expression.child())
    if kind == "Generate":
        for column in seq(plan.generatorOutput()):
            yield _number(column), _reads(plan.generator())
    if kind == "Expand":
        projections = [list(seq(projection)) for projection in seq(plan.projections())]
        for position, column in enumerate(seq(plan.output())):
            yield _number(column), frozenset().union(*(_reads(made[position]) for made in projections))


def _groups(plan: Any, kind: str) -> tuple[Term, ...] | None:
    if kind == "Aggregate":
        return tuple(_term(one) for one in seq(plan.groupingExpressions()))
    if kind in ("Deduplicate", "DeduplicateWithinWatermark"):
        return tuple(_term(one) for one in seq(plan.keys()))
    if kind == "Distinct":
        return tuple(_term(one) for one in seq(plan.output()))
    if kind == "TransformWithStateInPySpark":
        return tuple(_term(one) for one in seq(plan.leftAttributes()))
    if kind in ("TransformWithState", "FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState"):
        return tuple(_term(one) for one in seq(plan.groupingAttributes()))
    return () if kind in _ALL_ROWS else None


def _equal(plan: Any, kind: str) -> Iterator[tuple[Term, Term]]:
    """The comparisons of a condition; a part of a join that compares in another way may bring together all it reads."""
    conditions = []
    if kind == "Join" and plan.condition().isDefined():
        conditions.append(plan.condition().get())
    elif kind == "Filter":
        conditions.append(plan.condition())
    while conditions:
        part = conditions.pop()
        name = part.getClass().getSimpleName()
        if name == "And":
            conditions += [part.right(), part.left()]
        elif name in _EQUAL:
            yield _term(part.left()), _term(part.right())
        elif kind == "Join":
            yield _term(part), _term(part)


def _term(expression: Any) -> Term:
    return Term(str(expression.sql()).replace("`", ""), _reads(expression))


def _reads(expression: Any) -> frozenset[int]:
    return frozenset(_number(column) for column in seq(expression.references().toSeq()))
