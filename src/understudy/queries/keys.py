"""Which columns are equal in all events of a sequence, so that its events can be grouped by them."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.queries import syntax as s

Place = tuple[str, str]
"""A step and one of its columns."""


def shared_keys(
    steps: Sequence[tuple[str, str]], conditions: Sequence[s.Expression | None]
) -> tuple[tuple[str, ...], ...]:
    """The keys of a sequence.

    Parameters
    ----------
    steps
        Name and stream of every step.
    conditions
        The condition of every step, its columns qualified by steps.

    Returns
    -------
    tuple
        For every key, its column in each stream, in the order in which streams first appear. A column counts if all
        steps of its stream use the same one: a row must tell its group whichever step it will be.
    """
    streams = list(dict.fromkeys(stream for _, stream in steps))
    keys = []
    for places in _classes(conditions):
        columns = [_common([name for name, own in steps if own == stream], places) for stream in streams]
        if all(columns):
            keys.append(tuple(column for column in columns if column is not None))
    return tuple(dict.fromkeys(keys))


def _common(steps: Sequence[str], places: Sequence[Place]) -> str | None:
    """The first column that is in the class for every one of these steps."""
    first = (column for step, column in places if step == steps[0])
    return next((column for column in first if all((step, column) in places for step in steps)), None)


def _classes(conditions: Sequence[s.Expression | None]) -> list[list[Place]]:
    """Columns that must be equal, by classes, in the order of the text."""
    classes: list[list[Place]] = []
    for condition in conditions:
        for part in s.conjuncts(condition):
            if isinstance(part, s.Binary) and part.operator == "=":
                _unite(classes, part.left, part.right)
    return classes


def _unite(classes: list[list[Place]], left: s.Expression, right: s.Expression) -> None:
    if not isinstance(left, s.Column) or not isinstance(right, s.Column):
        return
    new = [(column.stream or "", column.name) for column in (left, right)]
    touched = [one for one in classes if any(place in one for place in new)]
    united = list(dict.fromkeys([place for one in touched for place in one] + new))
    for one in touched:
        classes.remove(one)
    classes.append(united)
