"""Derives sequences: steps, what each row is carried for, and the key that all steps share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from understudy.queries import syntax as s
from understudy.queries.draft import Draft, event_time, items, need_items, need_within, no_groups, refuse
from understudy.queries.keys import shared_keys
from understudy.queries.places import Text
from understudy.queries.plans import Known, Output, PatternStep, Reason, SequencePlan
from understudy.queries.printer import duration, show
from understudy.queries.scope import Scope, unqualified

ACROSS = (s.Binary, s.Unary, s.Between, s.Among, s.Missing)
"""Nodes that may combine values of several events while a match is not complete; see `matching.evaluate`."""
ACROSS_OPERATORS = frozenset({"AND", "OR", "=", "<>", "<", "<=", ">", ">=", "+", "-", "*"})


def draft(query: s.Query, pattern: s.Pattern, text: Text, catalog: Mapping[str, Known]) -> Draft:
    """Every event that fulfils the first step begins a match; the first event that fulfils the next step goes on."""
    no_groups(query, text, "sequence")
    need_items(query, text, "sequence")
    within = need_within(query, text, "sequence")
    _check_names(pattern, text)
    inputs = tuple(dict.fromkeys(step.stream for step in pattern.steps))
    known = {name: catalog.get(name, Known(name)) for name in inputs}
    resolved = [_condition(text, pattern.steps[: number + 1], known) for number in range(len(pattern.steps))]
    carried = _Carried({step.name: inputs.index(step.stream) for step in pattern.steps}, len(inputs))
    steps = tuple(
        _step(text, step, inputs.index(step.stream), condition, carried)
        for step, condition in zip(pattern.steps, resolved, strict=True)
    )
    everything = Scope(text, {step.name: known[step.stream] for step in pattern.steps})
    selected = items(query, text, lambda value: everything.resolve(value))
    where = None if query.where is None else everything.resolve(query.where)
    times = [event_time(text, query.timing, one, within) for one in known.values()]
    keys = shared_keys([(step.name, step.stream) for step in pattern.steps], resolved)
    work = SequencePlan(
        times=tuple(time for time, _ in times),
        keys=keys,
        steps=steps,
        where=None if where is None else carried.columns_of(where),
        outputs=tuple(Output(one.name, carried.columns_of(one.value)) for one in selected),
        carried=carried.outputs,
        within_ms=within.ms,
    )
    key, why = _slice_key(keys)
    kind = Reason("kind", f"sequence of {len(steps)} events", f"-> says so; all within {duration(within.ms)}")
    reasons = (kind, *(reason for _, reason in times), Reason("key", _shown(keys, inputs) or "none", why))
    emits = _emits(pattern.steps[-1].name, work.times[steps[-1].input].column, selected)
    return Draft(tuple(known.values()), work, key, emits, reasons, why_key=why)


def _check_names(pattern: s.Pattern, text: Text) -> None:
    names = [step.name.lower() for step in pattern.steps]
    for number, step in enumerate(pattern.steps):
        if names[number] in names[:number]:
            raise refuse(
                text,
                step,
                f"two steps are called '{step.name}'",
                why="columns of the two events could not be told apart",
                fix=f"rename one: {step.name}{number + 1}={step.stream}",
            )


def _condition(text: Text, steps: Sequence[s.Step], known: Mapping[str, Known]) -> s.Expression | None:
    """The condition of the last of these steps: its own columns need no qualifier, those before it do."""
    last = steps[-1]
    scope = Scope(text, {step.name: known[step.stream] for step in steps}, inner=last.name)
    return None if last.condition is None else scope.resolve(last.condition)


def _step(text: Text, step: s.Step, number: int, condition: s.Expression | None, carried: _Carried) -> PatternStep:
    parts = list(s.conjuncts(condition))
    own = [part for part in parts if _reads(part) <= {step.name}]
    across = [part for part in parts if part not in own]
    return PatternStep(
        name=step.name,
        input=number,
        own=_all([unqualified(part) for part in own]),
        across=_all([carried.values_of(part, text) for part in across]),
    )


def _reads(node: s.Node) -> set[str]:
    return {column.stream or "" for column in s.columns(node)}


def _all(parts: Sequence[s.Expression]) -> s.Expression | None:
    return reduce(lambda left, right: s.Binary("AND", left, right), parts) if parts else None


@dataclass
class _Carried:
    """The values of every input's rows that conditions and results need."""

    input_of: Mapping[str, int]
    inputs: int
    found: list[list[Output]] = field(init=False)

    def __post_init__(self) -> None:
        self.found = [[] for _ in range(self.inputs)]

    @property
    def outputs(self) -> tuple[tuple[Output, ...], ...]:
        return tuple(tuple(one) for one in self.found)

    def columns_of(self, expression: s.Expression) -> s.Expression:
        """The expression over carried columns: Spark evaluates it when a match is complete."""
        return self._rewritten(expression, lambda node: isinstance(node, s.Column))

    def values_of(self, expression: s.Expression, text: Text) -> s.Expression:
        """The expression with everything carried that one event alone decides: Spark evaluates that beforehand."""

        def alone(node: s.Node) -> bool:
            if len(_reads(node)) == 1:
                return True
            _check_across(node, text)
            return False

        return self._rewritten(expression, alone)

    def _rewritten(self, expression: s.Expression, carry: Callable[[Any], bool]) -> s.Expression:
        changed: s.Expression = s.rewrite(expression, lambda node: self._slot(node) if carry(node) else None)
        return changed

    def _slot(self, node: s.Expression) -> s.Column:
        step = next(iter(_reads(node)))
        values = self.found[self.input_of[step]]
        value = unqualified(node)
        slot = next((one for one in values if one.value == value), None)
        if slot is None:
            slot = Output(f"v{sum(len(one) for one in self.found)}", value)
            values.append(slot)
        return s.Column(slot.name, step, span=node.span)


def _check_across(node: s.Node, text: Text) -> None:
    fits = isinstance(node, ACROSS) and not (isinstance(node, s.Binary) and node.operator not in ACROSS_OPERATORS)
    if fits or isinstance(node, s.Literal):
        return
    raise refuse(
        text,
        node,
        f"{show(node)} cannot be evaluated between events",
        why="only comparisons, AND, OR, NOT, +, - and * are evaluated while a match is incomplete",
        fix="apply functions to one event at a time, multiply instead of dividing, or move the condition to WHERE",
    )


def _slice_key(keys: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], str]:
    if not keys:
        return (), "no column is compared for equality in all steps, so all events must meet in one slice"
    same = tuple(columns[0] for columns in keys if len(set(columns)) == 1)
    if same:
        return same, "every step compares it for equality: the events of a match meet in one slice"
    return (), "its columns have different names in the inputs, and the key of slices has one name in every input"


def _shown(keys: Sequence[Sequence[str]], inputs: Sequence[str]) -> str:
    names = (columns[0] if len(set(columns)) == 1 else " = ".join(map(".".join, zip(inputs, columns, strict=True)))
             for columns in keys)  # fmt: skip
    return ", ".join(names)


def _emits(last: str, column: str, selected: Sequence[Output]) -> Known:
    """A match is emitted when its last event is final, so matches come in the order of that event's time."""
    time = next((one.name for one in selected if one.value == s.Column(column, last)), None)
    why = "matches are emitted in the order of their last event"
    return Known("", tuple(one.name for one in selected), time, why_time=why)
