"""Derives joins: two streams, an equality, and a bound on how far apart in time two rows may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from understudy.queries import syntax as s
from understudy.queries.draft import Draft, event_time, items, need_items, need_within, no_groups, refuse
from understudy.queries.places import Text
from understudy.queries.plans import Joining, Known, Output, Reason, Side
from understudy.queries.printer import duration, show
from understudy.queries.scope import Scope


def draft(query: s.Query, join: s.Join, text: Text, catalog: Mapping[str, Known]) -> Draft:
    """Pairs of rows that fulfil ON and whose times differ by at most WITHIN."""
    no_groups(query, text, "join")
    need_items(query, text, "join")
    within = need_within(query, text, "join")
    left, right = (_alias(stream) for stream in (join.left, join.right))
    if left.lower() == right.lower():
        raise refuse(
            text,
            join.right,
            f"both sides of the join are called '{left}'",
            why="columns could not be told apart",
            fix=f"name them: {join.left.name} AS a JOIN {join.right.name} AS b",
        )
    inputs = tuple(dict.fromkeys((join.left.name, join.right.name)))
    known = {name: catalog.get(name, Known(name)) for name in inputs}
    scope = Scope(text, {left: known[join.left.name], right: known[join.right.name]})
    condition = scope.resolve(join.on)
    key, why = _key(join, text, condition)
    times = {name: event_time(text, query.timing, known[name], within) for name in inputs}
    work = Joining(
        left=Side(inputs.index(join.left.name), left, times[join.left.name][0]),
        right=Side(inputs.index(join.right.name), right, times[join.right.name][0]),
        kind=join.kind,
        on=condition,
        within_ms=within.ms,
        where=None if query.where is None else scope.resolve(query.where),
        outputs=items(query, text, scope.resolve),
    )
    kind = Reason("kind", f"{join.kind} join", f"rows wait {duration(within.ms)} of event time for their partners")
    reasons = (kind, *(reason for _, reason in times.values()), Reason("key", ", ".join(key) or "none", why))
    return Draft(inputs=tuple(known.values()), work=work, key=key, emits=_emits(work), reasons=reasons, why_key=why)


def _alias(stream: s.Stream) -> str:
    return stream.alias or stream.name


def _key(join: s.Join, text: Text, condition: s.Expression) -> tuple[tuple[str, ...], str]:
    """Columns that ON compares and that have one name on both sides."""
    equal = [pair for part in s.conjuncts(condition) if (pair := _compared(part)) is not None]
    if not equal:
        raise refuse(
            text,
            join.on,
            "the join compares no column of one side with one of the other",
            why="every row would have to be compared with every other one",
            fix=f"add an equality: ON {_alias(join.left)}.id = {_alias(join.right)}.id",
        )
    key = tuple(dict.fromkeys(a.name for a, b in equal if a.name == b.name))
    if key:
        return key, "ON compares it on both sides: partners meet in one slice"
    first = equal[0]
    return (), f"{show(first[0])} and {show(first[1])} have different names, and a key has one name in every input"


def _compared(part: s.Expression) -> tuple[s.Column, s.Column] | None:
    if not isinstance(part, s.Binary) or part.operator != "=":
        return None
    left, right = part.left, part.right
    if isinstance(left, s.Column) and isinstance(right, s.Column) and left.stream != right.stream:
        return left, right
    return None


def _emits(work: Joining) -> Known:
    """A pair appears when its second row does; its own time may be as old as the bound allows."""
    times = [s.Column(side.time.column, side.alias) for side in (work.left, work.right)]
    found: Sequence[Output] = [one for time in times for one in work.outputs if one.value == time]
    late_ms = max(work.left.time.late_ms, work.right.time.late_ms) + work.within_ms
    columns = tuple(one.name for one in work.outputs)
    return Known("", columns, found[0].name if found else None, late_ms, why_time="it is the event time of one side")
