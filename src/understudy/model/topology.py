"""The topology a user writes: sources, operators, sinks, and who reads whom."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from understudy.errors import InvalidInput
from understudy.model.costs import EVERYTHING, Costs
from understudy.model.durations import seconds as seconds
from understudy.model.entries import Inputs, Operator, Order, OutputMode, Sink, Source, Stream, inputs_of
from understudy.model.entry_checks import at, bad_name, check_columns, check_entry, check_key_types
from understudy.model.names import valid_name
from understudy.model.place import caller
from understudy.model.recovery import Recovery

__all__ = ["Operator", "OutputMode", "Sink", "Source", "Topology", "seconds", "stream_name"]


@dataclass
class Topology:
    """A directed acyclic graph of sources, operators and sinks: the application that `understudy run` runs.

    An application file makes one topology and adds to it with `source`, `operator` and `sink`.
    Nothing runs while it is built; a mistake raises `InvalidInput` with the reason and the fix.

    Parameters
    ----------
    name : str
        Name of the application: letters, digits, ``-`` and ``_``, starting with a letter.
    epoch : str or float, optional
        Length of an epoch, as text (``"500 ms"``, ``"2 s"``, ``"1 minute"``) or in seconds. Every stream is cut into
        epochs; one epoch is one Spark micro-batch. Default: one second.
    costs : Costs, optional
        Weights of the resources. The controller compares schemes by them, for operators with a recovery objective.
        Default: ``Costs.EVERYTHING``, all resources alike.
    replicas : int, optional
        Number of slices that may have working secondaries. A planner chooses those that keep most of the output alive
        when everything else fails, and chooses again when the rates change; ``--budget`` overrides it. Default: no
        plan, every operator is protected as its ``recovery`` says.
    tentative_after : str or float, optional
        How long a slice may be away until sinks get tentative output: what the others make without it, marked, and
        replaced by the stable output later. Default: never.

    Attributes
    ----------
    sources, operators, sinks : list
        What was added so far, in this order.
    epoch_s : float
        Length of an epoch in seconds.
    tentative_s : float or None
        ``tentative_after`` in seconds.

    Raises
    ------
    InvalidInput
        If the name cannot be used, the epoch is not a positive time, ``replicas`` is not a whole number, 0 or more, or
        ``tentative_after`` is negative.

    Examples
    --------
    >>> import understudy as us
    >>> import pyarrow as pa
    >>> def numbers(epoch, slice, rows, rng):
    ...     return pa.table({"digit": rng.integers(0, 10, rows), "n": range(rows)})
    >>> app = us.Topology("sums", epoch="500 ms")
    >>> source = app.source("numbers", us.sources.Generator(numbers, "digit long, n long", rate=100))
    >>> @app.operator(source, key="digit", slices=2, output_mode="update")
    ... def totals(rows):
    ...     return rows.groupBy("digit").sum("n").toDF("digit", "total")
    >>> sink = app.sink("out", totals, us.sinks.Parquet("totals"))
    >>> app.validate()
    >>> app.epoch_s, [operator.name for operator in app.operators]
    (0.5, ['totals'])

    Saved as ``sums.py``, it is run by ``understudy run sums.py --nodes 3``.
    """

    name: str
    epoch: str | float = "1 second"
    costs: Costs = EVERYTHING
    replicas: int | None = None
    tentative_after: str | float | None = None
    sources: list[Source] = field(default_factory=list, init=False)
    operators: list[Operator] = field(default_factory=list, init=False)
    sinks: list[Sink] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.epoch_s = seconds(self.epoch)
        if not isinstance(self.name, str) or not valid_name(self.name):
            raise bad_name("topology", self.name)
        if not 0 < self.epoch_s < math.inf:
            raise InvalidInput(
                f"topology '{self.name}' has an epoch of {self.epoch_s:g} s",
                why="an epoch is the piece of time that is processed and committed at once",
                fix='give a positive time, like epoch="500 ms"',
            )
        if self.replicas is not None and (not isinstance(self.replicas, int) or self.replicas < 0):
            raise InvalidInput(
                f"topology '{self.name}' has replicas={self.replicas!r}",
                why="it is the number of slices that may have working secondaries",
                fix="give a whole number, 0 or more, or leave it out",
            )
        self.tentative_s = None if self.tentative_after is None else seconds(self.tentative_after)
        if self.tentative_s is not None and not 0 <= self.tentative_s < math.inf:
            raise InvalidInput(
                f"topology '{self.name}' has tentative_after={self.tentative_after!r}",
                why="tentative output begins when a slice has been away for so long",
                fix='give a time, like tentative_after="1 s", or leave it out for no tentative output',
            )

    def source(self, name: str, source: Any, slices: int = 1) -> Source:
        """Adds a source: a stream of rows from outside the topology.

        Parameters
        ----------
        name : str
            Name of the stream; sources, operators and sinks share one set of names.
        source : understudy.sources.Source
            Where the rows come from, for example ``us.sources.Files(…)``.
        slices : int, optional
            Number of slices that read in parallel. Default: 1. A source's ``rate`` counts for every slice.

        Returns
        -------
        understudy.model.entries.Source
            The stream, to be passed to `operator` and `sink`.

        Raises
        ------
        InvalidInput
            If the name cannot be used, ``source`` is not a source, or ``slices`` is not a whole number above 0.

        Examples
        --------
        >>> import understudy as us
        >>> app = us.Topology("lines")
        >>> generator = us.sources.Generator(lambda epoch, slice, rows, rng: None, "line string")
        >>> text = app.source("text", generator, slices=2)
        >>> text.name, text.slices
        ('text', 2)

        What is not a source is refused, and the error says what to pass instead:

        >>> app.source("text", "rows.csv")
        Traceback (most recent call last):
        understudy.errors.InvalidInput: 'text' is given 'rows.csv'
          why: a source is an object of us.sources, not a value
          fix: pass one, like us.sources.Files("rows.csv", …)
        """
        entry = Source(name, source, slices, caller(1))
        check_entry(entry)
        self.sources.append(entry)
        return entry

    def operator(
        self,
        *inputs: Stream,
        name: str | None = None,
        key: str | Sequence[str] | None = None,
        slices: int = 1,
        output_mode: OutputMode = "append",
        input: Inputs = "independent",
        order: Order = "epoch",
        time: str | None = None,
        deterministic: bool = True,
        fuse: bool = True,
        recovery: Recovery | None = None,
    ) -> Callable[[Callable[..., Any]], Operator]:
        """Turns the decorated function into an operator of the topology.

        The function takes one streaming DataFrame per input and returns one streaming DataFrame. What Structured
        Streaming can do inside a query, it can do: ``groupBy``, windows, watermarks, stream-stream joins,
        ``transformWithState``.

        Parameters
        ----------
        *inputs : stream
            What the operator reads: sources and operators of this topology, or their names. At least one.
        name : str, optional
            Name of the operator and of the stream it emits. Default: the function's name.
        key : str or list of str, optional
            Columns by which the input rows are divided among the slices. Every input must have them. An operator that
            keeps state needs a key to have several slices.
        slices : int, optional
            Number of partitions of the operator, each protected and recovered by itself. Default: 1.
        output_mode : {"append", "update", "complete"}, optional
            Spark's output mode. Default: ``"append"``.
        input : {"independent", "correlated"}, optional
            How planning weighs several inputs: ``"correlated"`` says that output needs all of them, as in a join.
        order : {"epoch", "strict"}, optional
            Order of rows inside an epoch. ``"epoch"`` keeps a fixed order of channels; ``"strict"`` sorts all rows of
            the epoch by the column ``time``.
        time : str, optional
            The column that ``order="strict"`` sorts by.
        deterministic : bool, optional
            Pass False if equal input can give different output. Such an operator never runs as two working replicas.
        fuse : bool, optional
            Pass False to keep the operator in a query of its own. By default neighbouring stateless one-to-one
            operators share one.
        recovery : Recovery, optional
            How every slice is protected. Default: ``Recovery()``, passive replication.

        Returns
        -------
        callable
            A decorator. It returns the operator, which is a stream for other operators and sinks, and which can still
            be called with DataFrames, so that it can be tested alone.

        Raises
        ------
        InvalidInput
            When the function is decorated: if the function does not take one argument per input, a choice does not
            exist, an operator with ``deterministic=False`` has an active scheme, or ``order="strict"`` lacks
            ``time``.

        Notes
        -----
        The function builds the query: it is called when a query starts, not for every row or epoch, and must then
        return the same plan every time.

        Examples
        --------
        >>> import understudy as us
        >>> app = us.Topology("clicks")
        >>> @app.operator("clicks", key="page", slices=2, output_mode="update", recovery=us.Recovery(objective="2 s"))
        ... def visits(rows):
        ...     return rows.groupBy("page").count()
        >>> @app.operator(visits)
        ... def popular(rows):
        ...     return rows.where("count > 100")
        >>> visits.key, visits.recovery.objective_s, popular.inputs
        (('page',), 2.0, ('visits',))
        """

        def add(function: Callable[..., Any]) -> Operator:
            entry = Operator(
                name=name or function.__name__,
                inputs=tuple(stream_name(stream) for stream in inputs),
                function=function,
                key=_columns(key),
                slices=slices,
                output_mode=output_mode,
                input=input,
                order=order,
                time=time,
                deterministic=deterministic,
                fuse=fuse,
                recovery=Recovery() if recovery is None else recovery,
                place=caller(1),
            )
            check_entry(entry)
            self.operators.append(entry)
            return entry

        return add

    def sink(self, name: str, stream: Stream, sink: Any, tentative: bool | None = None) -> Sink:
        """Adds a sink: writes every epoch of a stream to the outside, in order, one transaction per epoch.

        Parameters
        ----------
        name : str
            Name of the sink; the report lists its epochs, rows and digest under it.
        stream : stream
            What is written: a source or an operator of this topology, or its name.
        sink : understudy.sinks.Sink
            Where the rows go, for example ``us.sinks.Parquet("counts")``.
        tentative : bool, optional
            Whether this sink gets tentative output, in a topology with ``tentative_after``. Default: if it can take it.

        Returns
        -------
        understudy.model.entries.Sink
            The entry of the topology.

        Raises
        ------
        InvalidInput
            If the name cannot be used, ``sink`` is not a sink, or it cannot take the tentative output asked for.

        Examples
        --------
        >>> import understudy as us
        >>> app = us.Topology("clicks")
        >>> out = app.sink("out", "popular", us.sinks.JsonLines("popular"))
        >>> out.name, out.stream
        ('out', 'popular')
        """
        entry = Sink(name, stream_name(stream), sink, caller(1), tentative)
        check_entry(entry)
        self.sinks.append(entry)
        return entry

    def validate(self) -> None:
        """Checks everything that can be known without Spark and raises the first mistake found.

        `understudy run` and `understudy topology` call it; call it yourself to test an application file. What concerns
        one entry alone was checked when it was added.

        Raises
        ------
        InvalidInput
            If two entries share a name, there is no source or no sink, an input does not exist, operators form a cycle,
            nobody reads a stream, two sinks write to one directory, or a key is not a column of a source that the
            operator reads.

        Examples
        --------
        >>> import understudy as us
        >>> app = us.Topology("empty")
        >>> app.validate()
        Traceback (most recent call last):
        understudy.errors.InvalidInput: topology 'empty' has no source
          why: data must come from somewhere and go somewhere
          fix: add one with app.source(…)
        """
        entries: list[Source | Operator | Sink] = [*self.sources, *self.operators, *self.sinks]
        _check_names(entries)
        if not self.sources or not self.sinks:
            missing = "source" if not self.sources else "sink"
            raise InvalidInput(
                f"topology '{self.name}' has no {missing}",
                why="data must come from somewhere and go somewhere",
                fix=f"add one with app.{missing}(…)",
            )
        self._check_edges()
        _check_targets(self.sinks)
        self._check_all_read()
        self._check_columns()

    @property
    def streams(self) -> dict[str, Source | Operator]:
        """Everything that can be read, by name: the sources, then the operators.

        Returns
        -------
        dict
            A new dictionary; changing it does not change the topology.
        """
        entries: list[Source | Operator] = [*self.sources, *self.operators]
        return {entry.name: entry for entry in entries}

    def _check_edges(self) -> None:
        streams = self.streams
        readers: list[Operator | Sink] = [*self.operators, *self.sinks]
        edges = {reader.name: inputs_of(reader) for reader in readers}
        for reader in readers:
            for stream in inputs_of(reader):
                if stream not in streams:
                    raise InvalidInput(
                        f"{at(reader)}'{reader.name}' reads '{stream}', which does not exist",
                        why=f"the streams of '{self.name}' are {', '.join(sorted(streams))}",
                        fix="correct the name, or define the stream",
                    )
        try:
            TopologicalSorter(edges).prepare()
        except CycleError as error:
            cycle = " -> ".join(reversed(error.args[1]))
            raise InvalidInput(
                f"the operators form a cycle: {cycle}",
                why="an epoch of each would have to wait for the same epoch of the other",
                fix="break the cycle; state inside one operator can often replace it",
            ) from None

    def _check_all_read(self) -> None:
        readers: list[Operator | Sink] = [*self.operators, *self.sinks]
        read = {stream for reader in readers for stream in inputs_of(reader)}
        for name, entry in self.streams.items():
            if name not in read:
                raise InvalidInput(
                    f"{at(entry)}nobody reads '{name}'",
                    why="what it makes would be thrown away",
                    fix=f"add app.sink(…, '{name}', …), let an operator read it, or remove it",
                )

    def _check_columns(self) -> None:
        """Keys and times of operators that read sources; what operators return only Spark can say."""
        schemas = {source.name: source.source.schema for source in self.sources}
        for operator in self.operators:
            for stream in operator.inputs:
                if stream in schemas:
                    check_columns(operator, stream, schemas[stream].names)
            check_key_types(operator, schemas)

    def in_order(self) -> list[Operator]:
        """Returns the operators so that each comes after those it reads.

        Returns
        -------
        list of understudy.model.entries.Operator

        Examples
        --------
        >>> import understudy as us
        >>> app = us.Topology("chain")
        >>> last = app.operator("first", name="last")(lambda rows: rows)
        >>> first = app.operator("text", name="first")(lambda rows: rows)
        >>> [operator.name for operator in app.in_order()]
        ['first', 'last']
        """
        by_name = {operator.name: operator for operator in self.operators}
        graph = {op.name: [name for name in op.inputs if name in by_name] for op in self.operators}
        return [by_name[name] for name in TopologicalSorter(graph).static_order()]


def stream_name(stream: Stream) -> str:
    """What is no stream keeps its text, so that the check can say who wanted to read it."""
    return stream if isinstance(stream, str) else str(getattr(stream, "name", stream))


def _columns(key: str | Sequence[str] | None) -> tuple[str, ...]:
    if key is None:
        return ()
    columns = (key,) if isinstance(key, str) or not isinstance(key, Sequence) else tuple(key)
    if not all(isinstance(column, str) for column in columns):
        raise InvalidInput(
            f"key={key!r} names no columns",
            why="a key is a column, or several, by which the inputs are divided among the slices",
            fix="give names, like key='word' or key=['user', 'shop']",
        )
    return columns


def _check_names(entries: Sequence[Source | Operator | Sink]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            raise InvalidInput(
                f"{at(entry)}the name '{entry.name}' is used twice",
                why="sources, operators and sinks of a topology share one set of names",
                fix="rename one of them",
            )
        seen.add(entry.name)


def _check_targets(sinks: Sequence[Sink]) -> None:
    """Two sinks in one directory would take each other's epochs for their own.

    Relative paths are compared as if they lay in one place, which they do. A path that reaches the same directory in
    another way (absolute, or through a link) is refused when the sink opens it, by the name in its claim.
    """
    writers: dict[str, str] = {}
    for sink in sinks:
        place = sink.sink.directory() if hasattr(sink.sink, "directory") else None
        if place is None:
            continue
        first = writers.setdefault(posixpath.normpath(str(place)), sink.name)
        if first != sink.name:
            raise InvalidInput(
                f"sinks '{first}' and '{sink.name}' both write to {place}",
                why="epochs are files with the epoch's number in their names; the second one's would be dropped",
                fix="give each sink a directory of its own",
            )
