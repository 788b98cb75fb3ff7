"""`us.query`: a query in text becomes an operator of a topology."""

from __future__ import annotations

from understudy.errors import InvalidInput
from understudy.model.entries import Operator
from understudy.model.entry_checks import check_entry
from understudy.model.place import caller
from understudy.model.recovery import Recovery
from understudy.model.topology import Topology
from understudy.queries.catalog import known_streams, read_streams
from understudy.queries.compiled import Compiled
from understudy.queries.derive import derive
from understudy.queries.parser import parse
from understudy.queries.places import Text, did_you_mean
from understudy.queries.plans import Plan


def query(
    app: Topology, text: str, *, name: str, slices: int | None = None, recovery: Recovery | None = None
) -> Operator:
    """Adds an operator that is written as a query instead of a function.

    Parameters
    ----------
    app : Topology
        The topology; the query reads its sources and the operators that were added before.
    text : str
        The query; docs/queries.md explains the language.
    name : str
        Name of the operator and of the stream it emits.
    slices : int, optional
        Number of slices. Default: as many as its inputs have, or 1 if the query keeps state that no key divides.
    recovery : Recovery, optional
        How every slice is protected. Default: ``Recovery()``, passive replication.

    Returns
    -------
    understudy.model.entries.Operator
        The stream, to be read by other queries, operators and sinks.

    Raises
    ------
    InvalidInput
        If the text is not a query, or means nothing with these streams; the error shows the place in the text. What
        only Spark knows, such as the types of computed columns, is checked before data flows.
    Unavailable
        If the extra ``queries`` is not installed.

    Notes
    -----
    Keys are derived from GROUP BY, ON and the equalities of a sequence; event times from the sources. ``understudy
    query explain`` prints what was derived, and why.

    Examples
    --------
    >>> import understudy as us
    >>> app = us.Topology("market")
    >>> schema = "symbol string, at timestamp, price double"
    >>> trades = app.source("trades", us.sources.Generator(lambda epoch, slice, rows, rng: None, schema), slices=2)
    >>> means = us.query(app, "SELECT symbol, avg(price) AS mean FROM trades WITHIN 10 s GROUP BY symbol", name="means")
    >>> means.key, means.slices, means.output_mode
    (('symbol',), 2, 'append')
    >>> us.query(app, "SELECT symbol, avg(prise) FROM trades GROUP BY symbol", name="wrong")
    Traceback (most recent call last):
    understudy.queries.places.QueryMistake: query 'wrong', line 1, column 20: 'prise' is not a column of 'trades'
        SELECT symbol, avg(prise) FROM trades GROUP BY symbol
                           ^^^^^
      why: its columns are symbol, at, price
      fix: write price
    """
    plan = planned(app, text, name, slices)
    entry = Operator(
        name=name,
        inputs=plan.inputs,
        function=Compiled(plan),
        key=plan.key,
        slices=plan.slices,
        output_mode=plan.output_mode,
        input="correlated" if len(plan.inputs) > 1 else "independent",
        order="epoch",
        time=None,
        deterministic=True,
        fuse=True,
        recovery=Recovery() if recovery is None else recovery,
        place=caller(1),
    )
    check_entry(entry)
    app.operators.append(entry)
    return entry


def planned(app: Topology, text: str, name: str, slices: int | None = None) -> Plan:
    """The plan of a query over the streams of a topology, which is left as it is."""
    if not isinstance(text, str):
        raise InvalidInput(
            f"query '{name}' is given {type(text).__name__}",
            why="a query is text",
            fix='pass it as text, like "SELECT symbol FROM trades"',
        )
    tree, source, catalog = parse(text, name), Text(text, name), known_streams(app)
    for stream, node in read_streams(tree):
        if stream not in catalog:
            raise source.mistake(
                node.span,
                f"'{stream}' is not a stream of '{app.name}'",
                why=f"its streams are {', '.join(catalog) or '(none yet)'}; a query reads what was added before it",
                fix=did_you_mean(stream, list(catalog), "add the source, or the query it reads, first"),
            )
    return derive(tree, source, catalog, slices)
