"""Derives aggregations: windows, groups, aggregates, and conditions on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from understudy.queries import syntax as s
from understudy.queries.draft import Draft, event_time, items, refuse
from understudy.queries.places import Text
from understudy.queries.plans import WINDOW_COLUMNS, Aggregation, Known, Output, Reason, Time, Window, reads_window
from understudy.queries.printer import duration, show
from understudy.queries.scope import Scope, has, has_aggregate, is_aggregate, unqualified


def draft(query: s.Query, source: s.Stream, text: Text, catalog: Mapping[str, Known]) -> Draft:
    """One group for every window and every value of the GROUP BY expressions."""
    if not query.items:
        raise refuse(
            text,
            source,
            "* cannot be selected from groups",
            why="a group has many rows, and one is emitted",
            fix="name groups and aggregates: SELECT symbol, count(*)",
        )
    known = catalog.get(source.name, Known(source.name))
    scope = Scope(text, {source.alias or source.name: known})
    window, time, reasons = _window(query, text, known)
    where = None if query.where is None else unqualified(scope.resolve(query.where))
    _check_used(query, text)
    names = _Names(scope, text, _groups(query, scope), windowed=window is not None)
    outputs = items(query, text, names.replaced)
    having = None if query.having is None else names.replaced(_with_aliases(query.having, query.items, known))
    work = Aggregation(time, window, where, tuple(names.groups), tuple(names.aggregates), having, outputs)
    key = tuple(one.value.name for one in names.groups if isinstance(one.value, s.Column))
    return Draft(
        inputs=(known,),
        work=work,
        key=key,
        emits=_emits(outputs),
        reasons=(_kind(window), *reasons, _key_reason(key, names.groups)),
        output_mode="append" if window else "update",
        why_mode="without WITHIN a group never ends: every epoch emits the groups that it changed",
        why_key="GROUP BY names no column, so all rows must meet in one slice"
        if names.groups
        else "all rows of a window are one group, so they must meet in one slice",
    )


def _kind(window: Window | None) -> Reason:
    if window is None:
        return Reason("kind", "aggregation since the beginning", "there is no WITHIN")
    tumbling = window.every_ms == window.length_ms
    value = f"aggregation in {'tumbling' if tumbling else 'sliding'} windows"
    why = "windows follow each other: EVERY is not shorter than WITHIN" if tumbling else "EVERY is shorter than WITHIN"
    return Reason("kind", value, why)


def _key_reason(key: Sequence[str], groups: Sequence[Output]) -> Reason:
    if key:
        return Reason("key", ", ".join(key), "GROUP BY names it: the rows of a group meet in one slice")
    why = "GROUP BY names no column" if groups else "there is no GROUP BY"
    return Reason("key", "none", why)


def _window(query: s.Query, text: Text, known: Known) -> tuple[Window | None, Time | None, tuple[Reason, ...]]:
    timing = query.timing
    within, every = timing.within, timing.every
    if within is None:
        for node, word in ((timing.time, "TIME"), (timing.late, "LATE")):
            if node is not None:
                raise refuse(
                    text,
                    node,
                    f"{word} changes nothing here",
                    why="without WITHIN the groups have no windows",
                    fix=f"add WITHIN, or remove {word}",
                )
        return None, None, ()
    if within.ms <= 0 or (every is not None and not 0 < every.ms <= within.ms):
        wrong = within if within.ms <= 0 or every is None else every
        raise refuse(
            text,
            wrong,
            f"windows of {duration(within.ms)} cannot begin every {show(every)}" if every else "the window is empty",
            why="rows between two windows would be in none" if every and every.ms else "a window has a length",
            fix=f"choose a time above 0 and at most {duration(within.ms)}" if within.ms else "choose a time above 0",
        )
    time, reason = event_time(text, timing, known, within)
    return Window(within.ms, within.ms if every is None else every.ms), time, (reason,)


def _check_used(query: s.Query, text: Text) -> None:
    """Refuses a window over which nothing is counted."""
    if query.timing.within is not None and not query.groups and not any(has_aggregate(item) for item in query.items):
        raise refuse(
            text,
            query.timing.within,
            "WITHIN changes nothing here",
            why="nothing is counted or grouped in these windows",
            fix="remove it, or select an aggregate such as count(*)",
        )


def _groups(query: s.Query, scope: Scope) -> list[Output]:
    """The GROUP BY expressions; a name that is no column may be that of something selected."""
    known = next(iter(scope.streams.values()))
    wanted = (unqualified(scope.resolve(_with_aliases(group, query.items, known))) for group in query.groups)
    return [Output(f"_g{number}", value) for number, value in enumerate(dict.fromkeys(wanted))]


def _with_aliases(expression: s.Expression, selected: Sequence[s.Item], known: Known) -> s.Expression:
    """Names given by AS replaced by what they stand for, except where a column has that name."""
    given = {item.name.lower(): item.value for item in selected if item.name is not None}
    own = {column.lower() for column in known.columns or ()}

    def meaning(node: s.Node) -> s.Node | None:
        if not isinstance(node, s.Column) or node.stream is not None or node.name.lower() in own:
            return None
        return given.get(node.name.lower())

    changed: s.Expression = s.rewrite(expression, meaning)
    return changed


@dataclass
class _Names:
    """Groups and aggregates under names of their own, collected while expressions are replaced."""

    scope: Scope
    text: Text
    groups: list[Output]
    windowed: bool
    aggregates: list[Output] = field(default_factory=list)

    def replaced(self, expression: s.Expression) -> s.Expression:
        """The expression over names of groups and aggregates, and nothing else."""
        changed: s.Expression = s.rewrite(expression, self._meaning)
        return changed

    def _meaning(self, node: s.Node) -> s.Node | None:
        if isinstance(node, s.Column) and reads_window(node) and self._is_window(node):
            return s.Column(node.name.lower(), span=node.span)
        if is_aggregate(node):
            return self._aggregate(node)
        plain = None if has_aggregate(node) else self._group(node)
        if plain is None and isinstance(node, s.Column):
            raise self._ungrouped(node)
        return plain

    def _group(self, node: s.Node) -> s.Node | None:
        if self._reads_window(node):
            return None
        value = unqualified(self.scope.resolve(node))
        return next((s.Column(one.name, span=node.span) for one in self.groups if one.value == value), None)

    def _is_window(self, column: s.Column) -> bool:
        """Whether a window is meant; without windows it can only be a column of the stream."""
        if not self.windowed and not has(next(iter(self.scope.streams.values())), column.name):
            raise refuse(
                self.text,
                column,
                f"{column.name} needs windows",
                why="the groups go on forever, because there is no WITHIN",
                fix="add WITHIN 10 s",
            )
        return self.windowed

    def _reads_window(self, node: s.Node) -> bool:
        return self.windowed and any(reads_window(column) for column in s.columns(node))

    def _aggregate(self, node: s.Node) -> s.Column:
        inner = next((one for argument in s.children(node) for one in s.walk(argument) if is_aggregate(one)), None)
        if inner is not None:
            raise refuse(
                self.text,
                inner,
                f"{show(inner)} stands inside another aggregate",
                why="a group is counted once",
                fix="count in one query, and aggregate its result in a second one",
            )
        value = unqualified(self.scope.resolve(node, aggregates=True))
        found = next((one for one in self.aggregates if one.value == value), None)
        if found is None:
            found = Output(f"_a{len(self.aggregates)}", value)
            self.aggregates.append(found)
        return s.Column(found.name, span=node.span)

    def _ungrouped(self, column: s.Column) -> Exception:
        grouped = ", ".join(show(one.value) for one in self.groups) or "nothing"
        return refuse(
            self.text,
            column,
            f"'{column.name}' has many values in a group",
            why=f"rows are grouped by {grouped}",
            fix=f"add it to GROUP BY, or aggregate it: max({show(column)})",
        )


def _emits(outputs: Sequence[Output]) -> Known:
    """A result has the time at which its window starts: the end would fall into the next of larger windows."""
    time = next((one.name for one in outputs if one.value == s.Column(WINDOW_COLUMNS[0])), None)
    columns = tuple(one.name for one in outputs)
    return Known("", columns, time, why_time="windows are emitted in the order of their time")
