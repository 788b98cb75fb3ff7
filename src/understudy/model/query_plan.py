"""What the check needs to know of an analysed Spark plan: columns, where they come from, what groups rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Term:
    """An expression: its text, and the numbers of the columns it reads."""

    text: str
    reads: frozenset[int]


@dataclass(frozen=True)
class PlanNode:
    """One step of a plan. Columns have numbers that are unique in the plan.

    - `output`: the numbers of the columns that leave it, in their order.
    - `base`: of a leaf that is an input of the operator, the input and the name behind each number.
    - `made`: columns that an expression makes here, and what it reads.
    - `groups`: what brings rows together in state; None where no state is kept, empty where all rows meet.
    - `equal`: pairs of expressions that a condition compares.
    - `joins`: keeps both its inputs as state, until rows meet that `equal` says.
    """

    name: str
    output: tuple[int, ...]
    children: tuple[PlanNode, ...] = ()
    base: Mapping[int, tuple[int, str]] = field(default_factory=dict)
    made: Mapping[int, frozenset[int]] = field(default_factory=dict)
    groups: tuple[Term, ...] | None = None
    equal: tuple[tuple[Term, Term], ...] = ()
    joins: bool = False
    union: bool = False

    def walk(self) -> Iterator[PlanNode]:
        """Children first."""
        for child in self.children:
            yield from child.walk()
        yield self
