"""Finds sequences among the events of one key. Plain Python over plain values, no Spark.

The result depends on the events and their times alone, not on the order in which they arrive or on how they are cut
into epochs: events are handled in the order of their times, and events of one time in the order of their values.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from understudy.queries import syntax as s
from understudy.queries.plans import SequencePlan

Values = tuple[Any, ...]


@dataclass(frozen=True)
class Event:
    """A row that fulfils one step or more, as far as it alone decides that.

    Parameters
    ----------
    at
        Its event time in microseconds.
    steps
        One bit for every step whose own condition it fulfils.
    values
        What is carried of it.
    """

    at: int
    steps: int
    values: Values

    @property
    def order(self) -> tuple[int, str, int]:
        return self.at, repr(self.values), self.steps


Match = tuple[Event, ...]
"""Events of the steps in order; of a match that is not complete, of the first steps."""


@dataclass(frozen=True)
class Matcher:
    """The rules of one sequence.

    Parameters
    ----------
    names
        Names of the steps.
    conditions
        For every step, what the event must fulfil together with those before it.
    slots
        For every step, the name of each carried value.
    within_us
        The longest time from the first event to the last, in microseconds.

    Examples
    --------
    >>> rising = Matcher(("a", "b"), (None, s.Binary(">", s.Column("v0", "b"), s.Column("v0", "a"))), (("v0",),) * 2, 5)
    >>> begun, found = rising.advance([], [Event(1, 3, (10,)), Event(2, 3, (9,)), Event(4, 3, (11,))])
    >>> [tuple(event.values[0] for event in match) for match in found]
    [(10, 11), (9, 11)]
    >>> rising.alive(begun, 8), rising.alive(begun, 10)
    ([(Event(at=4, steps=3, values=(11,)),)], [])
    """

    names: tuple[str, ...]
    conditions: tuple[s.Expression | None, ...]
    slots: tuple[tuple[str, ...], ...]
    within_us: int

    @classmethod
    def of(cls, plan: SequencePlan) -> Matcher:
        return cls(
            names=tuple(step.name for step in plan.steps),
            conditions=tuple(step.across for step in plan.steps),
            slots=tuple(tuple(one.name for one in plan.carried[step.input]) for step in plan.steps),
            within_us=plan.within_ms * 1000,
        )

    def advance(self, begun: Iterable[Match], events: Iterable[Event]) -> tuple[list[Match], list[Match]]:
        """Matches that are not complete yet, and those that these events completed; `events` in any order."""
        waiting = list(begun)
        complete: list[Match] = []
        for event in sorted(events, key=lambda one: one.order):
            still: list[Match] = []
            for match in waiting:
                longer = self._extended(match, event)
                (complete if len(longer) == len(self.names) else still).append(longer)
            waiting = [match for match in still if event.at - match[0].at <= self.within_us]
            if self._fulfils(event, 0, ()):
                waiting.append((event,))
        return waiting, complete

    def alive(self, begun: Iterable[Match], watermark_us: int) -> list[Match]:
        """The matches that an event after the watermark can still continue."""
        return [match for match in begun if match[0].at + self.within_us > watermark_us]

    def _extended(self, match: Match, event: Event) -> Match:
        fits = match[-1].at < event.at <= match[0].at + self.within_us
        return (*match, event) if fits and self._fulfils(event, len(match), match) else match

    def _fulfils(self, event: Event, step: int, before: Match) -> bool:
        if not event.steps >> step & 1:
            return False
        condition = self.conditions[step]
        if condition is None:
            return True
        known = {
            (name, slot): value
            for name, slots, one in zip(self.names, self.slots, (*before, event), strict=False)
            for slot, value in zip(slots, one.values, strict=True)
        }
        return evaluate(condition, known) is True


def evaluate(expression: s.Node, known: Mapping[tuple[str, str], Any]) -> Any:
    """The value of an expression over carried values, with SQL's rules for NULL, which is None here.

    Examples
    --------
    >>> evaluate(s.Binary(">", s.Column("v0", "a"), s.Literal(3)), {("a", "v0"): None})
    >>> evaluate(s.Binary("+", s.Column("v0", "a"), s.Literal(3)), {("a", "v0"): 4})
    7
    """
    if isinstance(expression, s.Literal):
        return expression.value
    if isinstance(expression, s.Column):
        return known[expression.stream or "", expression.name]
    if isinstance(expression, s.Missing):
        return (evaluate(expression.value, known) is None) is not expression.negated
    if isinstance(expression, s.Binary) and expression.operator in ("AND", "OR"):
        left, right = (evaluate(one, known) for one in (expression.left, expression.right))
        return _both(left, right) if expression.operator == "AND" else _not(_both(_not(left), _not(right)))
    return _strict(expression, [evaluate(child, known) for child in s.children(expression)])


def _strict(expression: s.Node, values: Sequence[Any]) -> Any:
    """What needs all its values, or knows itself what to do without one."""
    if isinstance(expression, s.Among):
        found = _any(_compared("=", values[0], one) for one in values[1:])
        return _not(found) if expression.negated else found
    if isinstance(expression, s.Between):
        inside = _both(_compared(">=", values[0], values[1]), _compared("<=", values[0], values[2]))
        return _not(inside) if expression.negated else inside
    if isinstance(expression, s.Unary):
        if expression.operator == "NOT":
            return _not(values[0])
        return None if values[0] is None else -values[0]
    if isinstance(expression, s.Binary) and expression.operator in _ARITHMETIC:
        return None if None in values else _ARITHMETIC[expression.operator](*values)
    if isinstance(expression, s.Binary):
        return _compared(expression.operator, *values)
    raise TypeError(f"{type(expression).__name__} is not evaluated between events")


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_SIGNS: dict[str, Callable[[int], bool]] = {
    "=": lambda sign: sign == 0,
    "<>": lambda sign: sign != 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}


def _compared(sign: str, left: Any, right: Any) -> bool | None:
    """As Spark compares: with NULL nothing is known, and NaN equals itself and is above every number."""
    if left is None or right is None:
        return None
    nans = tuple(isinstance(one, float) and math.isnan(one) for one in (left, right))
    if any(nans):
        return _SIGNS[sign](nans[0] - nans[1])
    return _SIGNS[sign]((left > right) - (left < right))


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _any(values: Iterable[bool | None]) -> bool | None:
    found = list(values)
    if any(found):
        return True
    return None if None in found else False
