"""Says what became of a query: its syntax tree, the operator, and every derived value with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from understudy.queries import syntax as s
from understudy.queries.plans import Aggregation, Joining, Output, Plan, Selection, SequencePlan, Time
from understudy.queries.printer import duration, show


def as_json(plan: Plan) -> dict[str, Any]:
    """The explanation as plain JSON values.

    Returns
    -------
    dict
        `text` as printed back, `tree`, `operator` (name, inputs, key, slices, output mode, state, columns it emits),
        `steps` in the order in which rows meet them, and `reasons`.
    """
    return {
        "name": plan.text.name,
        "text": show(plan.query),
        "tree": tree(plan.query),
        "operator": {
            "inputs": list(plan.inputs),
            "key": list(plan.key),
            "slices": plan.slices,
            "output_mode": plan.output_mode,
            "stateful": plan.stateful,
            "emits": None if plan.emits.columns is None else list(plan.emits.columns),
            "event_time": plan.emits.time,
        },
        "steps": steps(plan),
        "reasons": [{"about": one.about, "value": one.value, "why": one.why} for one in plan.reasons],
    }


def as_text(plan: Plan) -> str:
    """The explanation for people: tree, steps, derived values with their reasons."""
    emitted = ", ".join(plan.emits.columns) if plan.emits.columns is not None else "all columns of its input"
    reads = f"{plan.text.name or 'the query'} reads {', '.join(plan.inputs)} and emits {emitted}"
    derived = [f"  {one.about:<12} {one.value}\n  {'':<12} because {one.why}" for one in plan.reasons]
    parts = [
        show(plan.query),
        "syntax tree\n" + "\n".join(f"  {line}" for line in _tree_lines(plan.query, "query")),
        "operator\n" + f"  {reads}\n" + "\n".join(f"  {number}. {step}" for number, step in enumerate(steps(plan), 1)),
        "derived\n" + "\n".join(derived),
    ]
    return "\n\n".join(parts)


def tree(node: s.Node) -> dict[str, Any]:
    """A node and everything below it; `at` is where it stands in the text."""
    found: dict[str, Any] = {"node": type(node).__name__.lower()}
    for one in fields(node):
        if one.name != "span":
            found[one.name] = _value(getattr(node, one.name))
    if node.span.end:
        found["at"] = [node.span.start, node.span.end]
    return found


def _value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    return tree(value) if isinstance(value, s.Node) else value


def _tree_lines(node: s.Node, role: str) -> Iterator[str]:
    """One line for each clause, and below it one for each expression."""
    leaf = isinstance(node, s.Item | s.Stream | s.Step | s.Duration) or not isinstance(
        node, s.Query | s.Join | s.Pattern | s.Timing
    )
    if leaf:
        yield f"{role}: {show(node)}"
        return
    yield role
    for one in fields(node):
        value = getattr(node, one.name)
        below = value if isinstance(value, tuple) else (value,)
        for child in below:
            if isinstance(child, s.Node) and child != s.Timing():
                yield from (f"  {line}" for line in _tree_lines(child, _role(one.name, child)))
            elif isinstance(child, str):
                yield f"  {one.name}: {child}"


def _role(name: str, child: s.Node) -> str:
    if name == "source":
        return type(child).__name__.lower()
    return {"items": "select", "groups": "group by", "steps": "step"}.get(name, name)


def steps(plan: Plan) -> list[str]:
    """What happens to rows, in order, in the words of Spark's DataFrames."""
    work = plan.work
    if isinstance(work, Selection):
        return [*_where(work.where), *_select(work.outputs)]
    if isinstance(work, Aggregation):
        return list(_aggregation(work))
    if isinstance(work, Joining):
        return list(_joining(plan, work))
    return list(_sequence(plan, work))


def _aggregation(work: Aggregation) -> Iterator[str]:
    groups = [f"{show(one.value)} AS {one.name}" for one in work.groups]
    if work.time is not None and work.window is not None:
        yield _watermark(work.time)
        length, every = duration(work.window.length_ms), duration(work.window.every_ms)
        groups.insert(0, f"window({work.time.column}, {length}, {every})")
    yield from _where(work.where)
    yield f"groupBy({', '.join(groups)})"
    if work.aggregates:
        yield f"agg({', '.join(f'{show(one.value)} AS {one.name}' for one in work.aggregates)})"
    yield from _where(work.having)
    yield from _select(work.outputs)


def _joining(plan: Plan, work: Joining) -> Iterator[str]:
    for side in (work.left, work.right):
        yield f"{plan.inputs[side.input]} AS {side.alias}: {_watermark(side.time)}"
    times = (f"{work.left.alias}.{work.left.time.column}", f"{work.right.alias}.{work.right.time.column}")
    bound = f"{times[0]} and {times[1]} differ by at most {duration(work.within_ms)}"
    yield f"join({work.kind}, {show(work.on)} AND {bound})"
    yield from _where(work.where)
    yield from _select(work.outputs)


def _sequence(plan: Plan, work: SequencePlan) -> Iterator[str]:
    for number, (name, time) in enumerate(zip(plan.inputs, work.times, strict=True)):
        yield f"{name}: {_watermark(time)}"
        own = [f"{step.name} if {_own(step.own)}" for step in work.steps if step.input == number]
        kept = [f"{show(one.value)} AS {one.name}" for one in work.carried[number]]
        yield f"{name}: an event for {', '.join(own)}; carries {', '.join(kept) or 'nothing'}"
    yield f"groupBy({', '.join(columns[0] for columns in work.keys) or 'one group'})"
    yield f"transformWithState(eventTime): {' -> '.join(_across(step.name, step.across) for step in work.steps)}"
    yield from _where(work.where)
    yield from _select(work.outputs)


def _own(condition: s.Expression | None) -> str:
    return "any row comes" if condition is None else show(condition)


def _across(name: str, condition: s.Expression | None) -> str:
    return name if condition is None else f"{name}({show(condition)})"


def _watermark(time: Time) -> str:
    return f"withWatermark({time.column}, {duration(time.late_ms)})"


def _where(condition: s.Expression | None) -> list[str]:
    return [] if condition is None else [f"where({show(condition)})"]


def _select(outputs: Sequence[Output]) -> list[str]:
    if not outputs:
        return []
    shown = (show(one.value) + ("" if one.value == s.Column(one.name) else f" AS {one.name}") for one in outputs)
    return [f"select({', '.join(shown)})"]
