"""Files replayed as a stream, at a steady rate or by the times in the rows."""

from __future__ import annotations

import glob
from collections import deque
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from understudy.errors import InvalidInput
from understudy.model.schema import SchemaLike, parse
from understudy.sources import formats
from understudy.sources.interface import EndOfSource, Position, Source, SourceReader
from understudy.sources.pace import ByRate, ByTime, Pace, check_time_column, exact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

_CSV_OPTIONS = ("header", "delimiter", "sep", "quote", "escape", "nullValue", "encoding", "multiLine")


@dataclass(frozen=True)
class Files(Source):
    """A source that replays files as a stream, at a steady rate or by the times in the rows.

    Pass either `rate` or `event_time`.

    Parameters
    ----------
    path : str or Path
        A file, a directory or a glob. Several files are read one after the other, in the order of their names. Files
        whose names end with .gz, .bz2, .zst, .lz4 or .xz are unpacked.
    format : {"csv", "json", "text", "parquet"}
        Format of the files; JSON has one object a line.
    schema : str, pyarrow.Schema, mapping or StructType, optional
        What the rows look like, for example ``"word string, at timestamp"``. Only text files can do without.
    rate : float, optional
        Rows a second and slice.
    event_time : str, optional
        A time column by which the input is sorted. Epoch n holds the rows whose time lies n epochs after the first
        row's. A row that goes back in time, or has no time, belongs to the epoch being cut.
    speed : float, optional
        How much faster than it happened `event_time` is replayed. Default: 1.
    options : mapping, optional
        Spark's CSV options: ``header`` (False), ``delimiter`` or ``sep``, ``quote``, ``escape``, ``nullValue``,
        ``encoding``, ``multiLine``. Without a header the schema names the columns.

    Raises
    ------
    InvalidInput
        If there is no such file, the format or an option is unknown, the schema is missing, both or neither of `rate`
        and `event_time` are given, or a number cannot be used.

    Notes
    -----
    The files must not change during a run: after a failure a slice goes on from a bookmark. Several slices take rows in
    turn. Times without a zone are UTC. When the last row was read the source ends, with the same epoch in all slices.

    Examples
    --------
    >>> from pathlib import Path
    >>> import understudy as us
    >>> written = Path("words.csv").write_text("a,1\\nb,2\\nc,3\\n")
    >>> source = us.sources.Files("words.csv", "csv", "word string, n long", rate=2)
    >>> reader = source.open(0, 1, 1.0)
    >>> [reader.read(epoch, None, reader.cut(epoch, None)).column("word").to_pylist() for epoch in (0, 1)]
    [['a', 'b'], ['c']]
    """

    path: str | Path
    format: str
    schema: SchemaLike = None
    rate: float | None = None
    event_time: str | None = None
    speed: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_format(self.format, self.options)
        object.__setattr__(self, "schema", _schema(self.schema, self.format))
        # Nodes may run elsewhere: a relative path is meant from where the application was read.
        object.__setattr__(self, "path", Path(self.path).absolute())
        _check_pace(self)
        self.files()

    def files(self) -> list[Path]:
        """Returns the files in reading order.

        Returns
        -------
        list of Path

        Raises
        ------
        InvalidInput
            If there are none.
        """
        path = Path(self.path)
        if path.is_dir():
            found = [p for p in path.iterdir() if p.is_file() and not p.name.startswith((".", "_"))]
        elif path.is_file():
            found = [path]
        else:
            found = [Path(p) for p in glob.glob(str(path)) if Path(p).is_file()]  # noqa: PTH207 - the pattern is absolute
        if found:
            return sorted(found)
        raise InvalidInput(
            f"there is nothing to read at {path}",
            why="the directory has no files" if path.is_dir() else "no file has this name or fits this pattern",
            fix="check the path; relative paths start where the application was started",
        )

    def open(self, slice_index: int, slices: int, epoch_s: float) -> SourceReader:
        """Opens one slice; see `Source.open`."""
        return _FilesReader(self, slice_index, slices, epoch_s)


def _check_format(name: str, options: Mapping[str, Any]) -> None:
    if name not in formats.FORMATS:
        raise InvalidInput(
            f"format '{name}' is not known",
            why=f"files are read as {', '.join(formats.FORMATS)}",
            fix="choose one of them, or write a PySpark DataSource and use us.sources.Reader",
        )
    known = _CSV_OPTIONS if name == "csv" else ()
    for option in options:
        if option not in known:
            raise InvalidInput(
                f"option '{option}' is not known for {name} files",
                why=f"options are {', '.join(known)}" if known else f"{name} files have no options",
                fix="correct or remove the option",
            )


def _schema(schema: SchemaLike, name: str) -> pa.Schema:
    if schema is None and name != "text":
        raise InvalidInput(
            f"{name} files need a schema",
            why="types are not guessed: a guess may change with the first rows",
            fix='pass schema="word string, at timestamp"',
        )
    parsed = parse("value string" if schema is None else schema)
    if name == "text" and parsed.types != [pa.string()]:
        raise InvalidInput(
            "text files have one column of type string",
            why=f"the schema is {', '.join(f'{f.name} {f.type}' for f in parsed)}",
            fix='leave the schema away, or write schema="line string"',
        )
    return parsed


def _check_pace(source: Files) -> None:
    if (source.rate is None) == (source.event_time is None):
        raise InvalidInput(
            "files are replayed by rate or by event time",
            why="both were given" if source.rate is not None else "neither was given",
            fix="pass rate=1000, or event_time='column' and a speed",
        )
    if source.event_time is not None:
        check_time_column(source.schema, source.event_time)
    for name, value in (("rate", source.rate), ("speed", source.speed)):
        if value is not None and not 0 < value < float("inf"):
            raise InvalidInput(f"{name}={value} cannot be used", why="it must be above 0", fix=f"choose a {name}")


@dataclass(frozen=True)
class _Mark:
    """A place from which reading can go on, and what is known of the rows before it.

    `row` rows lie before it, `seen` is their highest epoch, of any slice; `pace` is what the pace remembers of them.
    """

    file: int = 0
    place: formats.Place = formats.START
    row: int = 0
    seen: int = -1
    pace: Any = None


class _FilesReader(SourceReader):
    """Reads ahead only to the requested epoch; going back starts again at the first row."""

    def __init__(self, source: Files, slice_index: int, slices: int, epoch_s: float) -> None:
        self._source = source
        self._slice, self._slices = slice_index, slices
        self._epoch_s = epoch_s
        self._files = source.files()
        self._start(_Mark(pace=self._new_pace().state()), 0)

    def _start(self, mark: _Mark, epoch: int) -> None:
        """Goes to a mark, behind which all rows of this epoch and those after it lie."""
        self._mark = mark
        self._pieces = self._stream(mark)
        self._pace = self._new_pace()
        self._pace.restore(mark.pace)
        self._row = mark.row
        self._seen = mark.seen
        self._dropped = epoch  # epochs below are gone from the buffer
        self._ended = False
        self._buffer: deque[tuple[pa.Table, NDArray[np.int64], _Mark]] = deque()

    def bookmark(self, epoch: int) -> Position | None:
        own = (mark for _, epochs, mark in self._buffer if epochs[-1] >= epoch)
        mark = next(own, self._mark)
        if mark.file >= len(self._files):
            # All rows lie before it.
            return asdict(mark) | {"epoch": epoch, "path": None, "size": 0}
        path = self._files[mark.file]
        return asdict(mark) | {"epoch": epoch, "path": str(path), "size": path.stat().st_size}

    def seek(self, bookmark: Position) -> None:
        fields = dict(bookmark)
        epoch, path, size = fields.pop("epoch"), fields.pop("path"), fields.pop("size")
        mark = _Mark(**fields | {"place": formats.Place(**fields["place"])})
        there = [(str(file), file.stat().st_size) for file in self._files[mark.file : mark.file + 1]]
        if there != ([] if path is None else [(path, size)]):
            raise InvalidInput(
                f"the files at {self._source.path} have changed",
                why=f"{path} had {size} bytes when the run was there" if path else "there are more files than before",
                fix="put the files back as they were, or run again in a new --home",
            )
        self._start(mark, epoch)

    def _new_pace(self) -> Pace:
        source, epoch_s = self._source, exact(self._epoch_s)
        if source.event_time is not None:
            return ByTime(source.event_time, epoch_s, exact(source.speed))
        assert source.rate is not None
        return ByRate(exact(source.rate), epoch_s, self._slices)

    def _stream(self, mark: _Mark) -> Iterator[tuple[pa.Table, int, formats.Place | None]]:
        """The rows from a mark on, each piece with the file and the place behind it."""
        source, start = self._source, mark.place
        for number in range(mark.file, len(self._files)):
            for piece in formats.read(self._files[number], source.format, source.schema, source.options, start):
                yield piece.rows, number, piece.next
            start = formats.START
            yield source.schema.empty_table(), number + 1, start

    def cut(self, epoch: int, start: Position) -> Position:  # noqa: ARG002 - the interface's
        self._reach(epoch)
        # Every slice ends with the same epoch, whether it has rows there or not: readers wait for all of them.
        if self._ended and self._seen < epoch:
            raise EndOfSource
        return None

    def read(self, epoch: int, start: Position, end: Position) -> pa.Table:  # noqa: ARG002 - the interface's
        self._reach(epoch)
        parts = []
        for table, epochs, _ in self._buffer:
            first, last = np.searchsorted(epochs, [epoch, epoch + 1])
            if first < last:
                parts.append(table.slice(int(first), int(last - first)))
        return pa.concat_tables(parts) if parts else self._source.schema.empty_table()

    def close(self) -> None:
        self._pieces = iter(())
        self._buffer.clear()

    def _reach(self, epoch: int) -> None:
        """Buffers the whole epoch; the one before stays too, since a cut may come ahead of a read."""
        if epoch < self._dropped:
            self._start(_Mark(pace=self._new_pace().state()), 0)
        while not self._ended and self._seen <= epoch:
            self._drop_before(epoch - 1)
            self._load()
        self._drop_before(epoch - 1)

    def _drop_before(self, epoch: int) -> None:
        while self._buffer and self._buffer[0][1][-1] < epoch:
            self._buffer.popleft()
        self._dropped = max(self._dropped, epoch)

    def _load(self) -> None:
        piece = next(self._pieces, None)
        if piece is None:
            self._ended = True
            return
        batch, file, place = piece
        mark = self._mark
        if batch.num_rows:
            self._add(batch, mark)
        if place is not None:
            self._mark = _Mark(file, place, self._row, self._seen, self._pace.state())

    def _add(self, batch: pa.Table, mark: _Mark) -> None:
        epochs = self._pace.epochs(batch, self._row)
        mine = (self._slice - self._row) % self._slices
        self._row += batch.num_rows
        self._seen = int(epochs[-1])
        if self._slices > 1:
            epochs = epochs[mine :: self._slices]
            batch = batch.take(pa.array(np.arange(mine, batch.num_rows, self._slices)))
        if len(epochs):
            self._buffer.append((batch, epochs, mark))
