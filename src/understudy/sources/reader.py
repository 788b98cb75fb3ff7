"""Any PySpark `DataSource` with a stream reader as a source of ours; its Python code runs here, without a JVM."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from understudy.errors import InvalidInput
from understudy.model.schema import SchemaLike, conform, parse
from understudy.model.spark_json import to_json
from understudy.sources.interface import Position, Source, SourceReader
from understudy.sources.rows import to_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa


class _Options(dict[str, str]):
    """Spark hands options over in lower case and looks them up in any case."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__({key.lower(): _text(value) for key, value in options.items()})

    def __getitem__(self, key: str) -> str:
        return super().__getitem__(key.lower())

    def __contains__(self, key: object) -> bool:
        return super().__contains__(str(key).lower())

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key.lower(), default)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Reader(Source):
    """A source that reads any PySpark data source; its Python code runs in the node, without a JVM.

    Parameters
    ----------
    data_source : type
        A class derived from ``pyspark.sql.datasource.DataSource``, with a ``streamReader`` or a
        ``simpleStreamReader``.
    options : mapping, optional
        Options of the data source, as for ``spark.readStream.options``.
    schema : str, pyarrow.Schema, mapping or StructType, optional
        What the rows look like. Default: what the data source's ``schema()`` returns.

    Raises
    ------
    InvalidInput
        If ``data_source`` is not such a class, or the schema cannot be read.

    Notes
    -----
    - An epoch ends at the reader's latest offset when the epoch is cut. The offset is recorded, because it depends on
      the moment, and the first recorded one counts.
    - The rows between two offsets must be the same whenever they are read.
    - Every slice reads the partitions whose number modulo the number of slices is its own; all slices share one cut.
    - ``commit`` is never called: rows may be read again after a failure.
    - Times without a zone are UTC.

    Examples
    --------
    A real data source derives from ``DataSource``; this one has all that is used of it.

    >>> import understudy as us
    >>> class Counting:
    ...     def __init__(self, options):
    ...         self.options = options
    ...     def schema(self):
    ...         return "n long"
    ...     def streamReader(self, schema):
    ...         raise NotImplementedError
    ...     def simpleStreamReader(self, schema):
    ...         return self
    ...     def initialOffset(self):
    ...         return {"n": 0}
    ...     def read(self, start):
    ...         end = {"n": start["n"] + 3}
    ...         return self.readBetweenOffsets(start, end), end
    ...     def readBetweenOffsets(self, start, end):
    ...         return ((n,) for n in range(start["n"], end["n"]))
    >>> reader = us.sources.Reader(Counting).open(0, 1, 1.0)
    >>> first = reader.cut(0, None)
    >>> first, reader.cut(1, first)
    ({'from': {'n': 0}, 'to': {'n': 3}}, {'from': {'n': 3}, 'to': {'n': 6}})
    >>> reader.read(0, None, first).column("n").to_pylist()
    [0, 1, 2]
    """

    data_source: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    schema: SchemaLike = None

    recorded = True

    def __post_init__(self) -> None:
        given = self.schema if self.schema is not None else self._instance().schema()
        object.__setattr__(self, "schema", parse(given))

    @property
    def name(self) -> str:
        """The data source as errors name it."""
        name = getattr(self.data_source, "name", None)
        return f"data source '{name() if callable(name) else self.data_source}'"

    def _instance(self) -> Any:
        if not isinstance(self.data_source, type) or not hasattr(self.data_source, "streamReader"):
            raise InvalidInput(
                f"{self.data_source!r} is no data source",
                why="a data source is a class with a streamReader or a simpleStreamReader",
                fix="pass the class itself, derived from pyspark.sql.datasource.DataSource",
            )
        return self.data_source(_Options(self.options))

    def open(self, slice_index: int, slices: int, epoch_s: float) -> SourceReader:  # noqa: ARG002 - the interface's
        """Opens one slice; see `Source.open`."""
        source = self._instance()
        schema = _spark_schema(self.schema)
        try:
            return _StreamReader(self, source.streamReader(schema), slice_index, slices)
        except NotImplementedError:
            pass
        try:
            return _SimpleReader(self, source.simpleStreamReader(schema), slice_index)
        except NotImplementedError as error:
            raise InvalidInput(
                f"{self.name} cannot be read as a stream",
                why="it has neither a streamReader nor a simpleStreamReader",
                fix="write one of the two methods, or read a snapshot with us.sources.Files",
            ) from error


def _spark_schema(schema: pa.Schema) -> Any:
    """Spark's StructType if the data source brought pyspark along, else the Arrow schema."""
    types = sys.modules.get("pyspark.sql.types")
    return schema if types is None else types.StructType.fromJson(to_json(schema))


class _AnyReader(SourceReader):
    """A position holds where its epoch starts, too: where the first epoch starts may depend on the moment."""

    def __init__(self, source: Reader, reader: Any, slice_index: int) -> None:
        self._source = source
        self._reader = reader
        self._slice = slice_index

    def cut(self, epoch: int, start: Position) -> Position:  # noqa: ARG002 - the interface's
        begin = self._reader.initialOffset() if start is None else start["to"]
        return {"from": begin, "to": self._latest(begin)}

    def read(self, epoch: int, start: Position, end: Position) -> pa.Table:  # noqa: ARG002 - the interface's
        if end["from"] == end["to"]:
            return self._source.schema.empty_table()
        table = to_table(self._items(end["from"], end["to"]), self._source.schema, self._source.name)
        return conform(table, self._source.schema)

    def close(self) -> None:
        stop = getattr(self._reader, "stop", None)
        if stop is not None:
            stop()

    def _latest(self, begin: Any) -> Any:
        raise NotImplementedError

    def _items(self, begin: Any, end: Any) -> Iterable[Any]:
        raise NotImplementedError


class _StreamReader(_AnyReader):
    def __init__(self, source: Reader, reader: Any, slice_index: int, slices: int) -> None:
        super().__init__(source, reader, slice_index)
        self._slices = slices
        # Before PySpark 4.2 the method had no parameters.
        self._limited = len(inspect.signature(reader.latestOffset).parameters) >= 2

    def _latest(self, begin: Any) -> Any:
        if self._limited:
            return self._reader.latestOffset(begin, self._reader.getDefaultReadLimit())
        return self._reader.latestOffset()

    def _items(self, begin: Any, end: Any) -> Iterator[Any]:
        for number, partition in enumerate(self._reader.partitions(begin, end)):
            if number % self._slices == self._slice:
                yield from self._reader.read(partition)


class _SimpleReader(_AnyReader):
    """A simple reader knows no partitions: the first slice reads everything."""

    def _latest(self, begin: Any) -> Any:
        rows, end = self._reader.read(begin)
        if end == begin and next(iter(rows), None) is not None:
            raise InvalidInput(
                f"{self._source.name} returned rows without moving on from {begin}",
                why="the same rows would be read again and again",
                fix="return an end offset behind the rows in read()",
            )
        return end

    def _items(self, begin: Any, end: Any) -> Iterable[Any]:
        return self._reader.readBetweenOffsets(begin, end) if self._slice == 0 else ()
