"""From a syntax tree and what is known about streams to the operator that does it: `derive`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from understudy.queries import aggregating, joining, sequencing
from understudy.queries import syntax as s
from understudy.queries.draft import Draft, items, refuse, unread_timing
from understudy.queries.places import Text
from understudy.queries.plans import Known, Plan, Reason, Selection
from understudy.queries.scope import Scope, has_aggregate, unqualified

Catalog = Mapping[str, Known]
"""Streams by name. One that is missing is one of which nothing is known."""


def derive(query: s.Query, text: Text, catalog: Catalog, slices: int | None = None) -> Plan:
    """The operator of a query.

    Parameters
    ----------
    query
        What was read from `text`.
    text
        Errors point into it.
    catalog
        The streams that can be read.
    slices
        Number of slices; None derives it from the inputs and the key.

    Raises
    ------
    QueryMistake
        If the query means nothing with these streams, or needs something that is not known.
    """
    if isinstance(query.source, s.Join):
        draft = joining.draft(query, query.source, text, catalog)
    elif isinstance(query.source, s.Pattern):
        draft = sequencing.draft(query, query.source, text, catalog)
    elif query.groups or query.timing.within or any(has_aggregate(item) for item in query.items):
        draft = aggregating.draft(query, query.source, text, catalog)
    else:
        draft = _selection(query, query.source, text, catalog)
    return _plan(draft, query, text, slices)


def _selection(query: s.Query, source: s.Stream, text: Text, catalog: Catalog) -> Draft:
    if query.having is not None:
        raise refuse(
            text,
            query.having,
            "HAVING without groups",
            why="HAVING keeps or drops groups",
            fix="write WHERE, or add GROUP BY",
        )
    unread_timing(text, query.timing)
    known = catalog.get(source.name, Known(source.name))
    scope = Scope(text, {source.alias or source.name: known})
    where = None if query.where is None else unqualified(scope.resolve(query.where))
    outputs = items(query, text, lambda value: unqualified(scope.resolve(value)))
    time = next((one.name for one in outputs if one.value == s.Column(known.time or "")), None)
    if not outputs:
        time = known.time
    columns = tuple(one.name for one in outputs) or known.columns
    emits = Known("", columns, time, known.late_ms, why_time=f"it is the event time of '{source.name}'")
    why = "every row is looked at by itself, so nothing is kept between epochs"
    return Draft((known,), Selection(where, outputs), (), emits, (Reason("kind", "selection", why),))


def _plan(draft: Draft, query: s.Query, text: Text, wanted: int | None) -> Plan:
    stateless = isinstance(draft.work, Selection)
    slices, why = _slices(draft, text, query, wanted)
    key = () if stateless else draft.key
    reasons = [*draft.reasons, Reason("slices", str(slices), why)]
    mode = "the output is final: no row is corrected later" if draft.output_mode == "append" else draft.why_mode
    reasons.append(Reason("output mode", draft.output_mode, mode))
    inputs = tuple(known.name for known in draft.inputs)
    return Plan(text, query, inputs, draft.work, key, slices, draft.output_mode, draft.emits, tuple(reasons))


def _slices(draft: Draft, text: Text, query: s.Query, wanted: int | None) -> tuple[int, str]:
    stateless = isinstance(draft.work, Selection)
    if wanted is not None:
        if wanted > 1 and not stateless and not draft.key:
            raise text.mistake(
                query.span,
                f"the query cannot be divided among {wanted} slices",
                why=draft.why_key,
                fix="give it slices=1, or group, join or match by a column that has one name in every input",
            )
        return wanted, "it was asked for"
    most = max(known.slices for known in draft.inputs)
    if stateless:
        return most, "as many as its input has: each reads one, and no row changes hands"
    if not draft.key:
        return 1, draft.why_key
    return most, f"as many as {_names(draft.inputs)}; rows are divided by the key"


def _names(inputs: Sequence[Known]) -> str:
    return " and ".join(f"'{known.name}'" for known in inputs) + (" has" if len(inputs) == 1 else " have at most")
