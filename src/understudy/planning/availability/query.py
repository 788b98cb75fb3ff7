"""Continuous queries as directed acyclic graphs of typed operators (Grüneberger et al. 2013, §2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter

from understudy.errors import InvalidInput


class OperatorType(StrEnum):
    SOURCE = "source"
    PROJECTION = "projection"
    FILTER = "filter"
    AGGREGATION = "aggregation"
    SEQUENCE = "sequence"
    JOIN = "join"
    DESTINATION = "destination"


INPUTS = {
    OperatorType.SOURCE: 0,
    OperatorType.PROJECTION: 1,
    OperatorType.FILTER: 1,
    OperatorType.AGGREGATION: 1,
    OperatorType.SEQUENCE: 2,
    OperatorType.JOIN: 2,
    OperatorType.DESTINATION: 1,
}


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator as a query states it; names are local to the query.

    `predicate` says what the operator does beyond its type: the filter condition, the stream a source
    reads, the stream a destination writes. `cost` is CPU seconds per tuple, `size` bytes per emitted
    tuple, `rate` tuples per second (sources only; every other rate follows).
    """

    name: str
    type: OperatorType
    inputs: tuple[str, ...] = ()
    predicate: str = ""
    selectivity: float = 1.0
    cost: float = 0.0
    size: float = 1.0
    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    operators: tuple[Operator, ...]

    def ordered(self) -> tuple[Operator, ...]:
        """The operators with every input before its reader; raises `InvalidInput` if this is no query."""
        by_name = {operator.name: operator for operator in self.operators}
        if len(by_name) != len(self.operators):
            raise self._refuse("an operator name occurs twice", "give every operator of a query its own name")
        for operator in self.operators:
            self._check(operator, by_name)
        self._check_ends()
        seen: set[str] = set()
        for operator in self.operators:
            if not seen.issuperset(operator.inputs):
                return self._sorted(by_name)
            seen.add(operator.name)
        return self.operators

    def _sorted(self, by_name: dict[str, Operator]) -> tuple[Operator, ...]:
        try:
            order = tuple(TopologicalSorter({o.name: o.inputs for o in self.operators}).static_order())
        except CycleError as error:
            circle = " → ".join(error.args[1])
            raise self._refuse(f"its operators form a circle: {circle}", "remove one of the edges") from None
        return tuple(by_name[name] for name in order)

    def _check(self, operator: Operator, by_name: dict[str, Operator]) -> None:
        where = f"operator {operator.name!r}"
        if len(operator.inputs) != INPUTS[operator.type]:
            raise self._refuse(
                f"{where} is a {operator.type} with {len(operator.inputs)} inputs",
                f"give it {INPUTS[operator.type]}",
            )
        for name in operator.inputs:
            if name not in by_name:
                raise self._refuse(f"{where} reads {name!r}, which it does not contain", "add or rename it")
            if by_name[name].type is OperatorType.DESTINATION:
                raise self._refuse(f"{where} reads the destination {name!r}", "read what the destination reads")
        if min(operator.selectivity, operator.cost, operator.size, operator.rate) < 0:
            raise self._refuse(f"{where} has a negative number", "selectivity, cost, size and rate are ≥ 0")

    def _check_ends(self) -> None:
        types = [operator.type for operator in self.operators]
        if OperatorType.DESTINATION not in types:
            raise self._refuse("it has no destination", "end it in an operator of type destination")
        read = {name for operator in self.operators for name in operator.inputs}
        for operator in self.operators:
            if operator.name not in read and operator.type is not OperatorType.DESTINATION:
                raise self._refuse(f"nobody reads operator {operator.name!r}", "remove it or connect it")

    def _refuse(self, why: str, fix: str) -> InvalidInput:
        return InvalidInput(f"query {self.name!r} cannot run", why=why, fix=fix)
