"""Whether the state of an operator is grouped by its key, so that no group is divided among slices.

Every column is traced back to the input columns it was computed from. A column whose origin Spark does not tell (the
result of a Python function over whole batches, a table that does not stream) may hold anything; whatever is grouped by
it is accepted. So is an expression over the key: whether it keeps apart what the key keeps apart is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from understudy.errors import InvalidInput
from understudy.model.entries import Operator
from understudy.model.entry_checks import at
from understudy.model.query_plan import PlanNode, Term

Base = tuple[int, str]
"""An input of the operator, and one of its columns."""
Origin = frozenset[Base]
UNKNOWN: Base = (-1, "")
_ANYTHING: Origin = frozenset({UNKNOWN})


def check_grouping(operator: Operator, plan: PlanNode) -> None:
    """Refuses an operator in several slices one of whose groups certainly spans more than one of them."""
    if operator.slices == 1 or not operator.key:
        return
    origins = _trace(plan)
    pairs = [(_origin(left, origins), _origin(right, origins)) for node in plan.walk() for left, right in node.equal]
    for node in plan.walk():
        if node.joins:
            _check_join(operator, node, origins, pairs)
        elif node.groups is not None:
            _check_groups(operator, node, node.groups, origins, pairs)


@dataclass(frozen=True)
class _Found:
    """The key column that is missing, and by what rows are brought together instead."""

    column: str
    doing: str
    instead: tuple[str, ...]


def _check_groups(
    operator: Operator,
    node: PlanNode,
    groups: Sequence[Term],
    origins: dict[int, Origin],
    pairs: Sequence[tuple[Origin, Origin]],
) -> None:
    reached = _equal_to(frozenset().union(*(_origin(term, origins) for term in groups)), pairs)
    if UNKNOWN in reached:
        return
    texts = ", ".join(term.text for term in groups)
    doing = f"groups by {texts}" if texts else f"keeps one group of all rows ({node.name})"
    for column in operator.key:
        if any((number, column) not in reached for number in _inputs_of(node, origins)):
            own = tuple(dict.fromkeys(name for _, name in sorted(_plain_columns(groups, origins))))
            raise _refuse(operator, _Found(column, doing, own))


def _check_join(
    operator: Operator, node: PlanNode, origins: dict[int, Origin], pairs: Sequence[tuple[Origin, Origin]]
) -> None:
    left, right = (_inputs_of(child, origins) for child in node.children[:2])
    for column in operator.key:
        ours, theirs = ({(number, column) for number in side} for side in (left, right))
        if not any(_meet(ours, theirs, a, b) or _meet(ours, theirs, b, a) for a, b in pairs):
            compared = ", ".join(f"{a.text} = {b.text}" for a, b in node.equal) or "nothing"
            raise _refuse(operator, _Found(column, f"joins by {compared}", ()))


def _meet(ours: set[Base], theirs: set[Base], left: Origin, right: Origin) -> bool:
    return bool((left & ours or UNKNOWN in left) and (right & theirs or UNKNOWN in right))


def _refuse(operator: Operator, found: _Found) -> InvalidInput:
    others = f"key={found.instead[0]!r}" if len(found.instead) == 1 else f"key={list(found.instead)!r}"
    fitting = f"write {others}, " if found.instead and set(found.instead) != set(operator.key) else ""
    return InvalidInput(
        f"{at(operator)}operator '{operator.name}' {found.doing}, and its key '{found.column}' is not among that",
        why=f"its rows are divided among {operator.slices} slices by the key, so rows that belong together would meet "
        "in different slices, each with a part of the result",
        fix=f"{fitting}add '{found.column}' there, or give the operator slices=1",
    )


def _trace(plan: PlanNode) -> dict[int, Origin]:
    """What every column of the plan was computed from."""
    origins: dict[int, Origin] = {}
    for node in plan.walk():
        for number, base in node.base.items():
            origins[number] = frozenset({base})
        for number, reads in _in_order(node):
            origins[number] = _union(origins, reads)
        if node.union:
            for position, number in enumerate(node.output):
                origins[number] = _union(origins, [child.output[position] for child in node.children])
        for number in node.output:
            # Passed on from below, or made here; of anything else nothing is known.
            origins.setdefault(number, _ANYTHING)
    return origins


def _in_order(node: PlanNode) -> Iterator[tuple[int, frozenset[int]]]:
    """What is made here: nothing reads what is made in the same step, except through another of its expressions."""
    waiting = dict(node.made)
    while waiting:
        ready = [number for number, reads in waiting.items() if not (reads - {number}) & waiting.keys()]
        for number in ready or list(waiting):
            yield number, waiting.pop(number)


def _union(origins: dict[int, Origin], reads: Iterable[int]) -> Origin:
    return frozenset().union(*(origins.get(number, _ANYTHING) for number in reads))


def _origin(term: Term, origins: dict[int, Origin]) -> Origin:
    return _union(origins, term.reads)


def _equal_to(reached: Origin, pairs: Sequence[tuple[Origin, Origin]]) -> Origin:
    """With everything that a condition says is equal to something reached."""
    while True:
        more = {base for a, b in pairs for x, y in ((a, b), (b, a)) if x & reached for base in y}
        if more <= reached:
            return reached
        reached |= more


def _inputs_of(node: PlanNode, origins: dict[int, Origin]) -> set[int]:
    """The inputs whose rows come through here."""
    columns = node.children[0].output if node.groups is not None and node.children else node.output
    return {number for column in columns for number, _ in origins[column] - _ANYTHING}


def _plain_columns(groups: Sequence[Term], origins: dict[int, Origin]) -> set[Base]:
    """Input columns by which rows are grouped as they are, which could be a key."""
    return {base for term in groups if len(_origin(term, origins)) == 1 for base in _origin(term, origins)}
