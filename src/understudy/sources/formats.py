"""Files as a stream of Arrow tables: one function per format, never a whole file in memory.

Reading can begin at any place where a piece began before, so that a reader that returns does not read everything again.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import pyarrow.types as pt

from understudy.errors import InvalidInput, Unavailable
from understudy.model.schema import conform

if TYPE_CHECKING:
    from pathlib import Path

Options = Mapping[str, Any]
BLOCK = 1 << 20
"""Bytes read at once."""

_ROW = re.compile(r"(?:Row #|in row )(\d+)")


@dataclass(frozen=True)
class Place:
    """Where a piece of a file begins: the byte of the unpacked file, or the row group, and the number of its line."""

    at: int = 0
    line: int = 1


START = Place()


class Piece(NamedTuple):
    """Rows of a file, and where the next piece begins; None if reading cannot begin there."""

    rows: pa.Table
    next: Place | None


def read(path: Path, file_format: str, schema: pa.Schema, options: Options, start: Place = START) -> Iterator[Piece]:
    """The rows of one file in the schema's types; errors name the file and, where it is known, the line."""
    try:
        for rows, after in FORMATS[file_format](path, schema, options, start):
            yield Piece(conform(rows, schema), after)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error.what}", why=error.why, fix=error.fix) from error
    except pa.ArrowException as error:
        raise _bad_file(path, str(error).splitlines()[0]) from error
    except FileNotFoundError as error:
        raise InvalidInput(
            f"{path} is not there",
            why="the file was removed or renamed",
            fix="put it back, or change the path",
        ) from error
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise Unavailable(
            f"{path} cannot be read", why=str(error), fix="check that the file is whole and may be read"
        ) from error


def _bad_file(path: Path, why: str) -> InvalidInput:
    return InvalidInput(f"{path} cannot be read", why=why, fix="check the file, its format and the schema")


def _bad_line(line: int, why: str, fix: str) -> InvalidInput:
    return InvalidInput(f"line {line} cannot be read", why=why, fix=fix)


def _open(path: Path) -> Any:
    """A stream of the file's bytes, unpacked by the ending of its name."""
    if path.suffix in (".xz", ".lzma"):
        return pa.PythonFile(lzma.open(path), mode="r")
    return pa.input_stream(str(path), compression="detect")


def _csv(path: Path, schema: pa.Schema, options: Options, start: Place) -> Iterator[Piece]:
    header = bool(options.get("header", False))
    try:
        if _splits_at_lines(options):
            yield from _csv_blocks(path, schema, options, start, header)
        else:
            yield from _csv_stream(path, schema, options, header)
    except pa.ArrowKeyError as error:
        raise InvalidInput(
            str(error).strip("'\""),
            why=f"the schema has the columns {', '.join(schema.names)}",
            fix="name columns as the file's first line does, or leave the header option away",
        ) from error


def _splits_at_lines(options: Options) -> bool:
    """Whether every newline byte ends a row."""
    encoding = options.get("encoding", "utf8")
    return not options.get("multiLine", False) and "\n".encode(encoding) == b"\n"


def _csv_blocks(path: Path, schema: pa.Schema, options: Options, start: Place, header: bool) -> Iterator[Piece]:
    names = schema.names
    if header:
        names, first = _csv_header(path, options)
        start = max(start, first, key=lambda place: place.at)
    for line, block, after in _line_blocks(path, start):
        try:
            rows = csv_rows(block, names, schema, options, line)
        except pa.ArrowInvalid as error:
            if "Empty CSV file" in str(error):
                continue
            raise _csv_error(error, line, header) from error
        yield Piece(rows, after)


def csv_rows(block: bytes, names: list[str], schema: pa.Schema, options: Options, line: int = 1) -> pa.Table:
    """The rows of whole lines, of which the first has this number; `names` are the columns of the lines."""
    whole = _csv_read(options, names, len(block) + 1)
    rows = pyarrow.csv.read_csv(pa.BufferReader(block), whole, _csv_parse(options), _csv_convert(schema, options))
    return _parse_times(rows, schema, line)


def _csv_header(path: Path, options: Options) -> tuple[list[str], Place]:
    """The names in the first line that has any, and the place behind it."""
    at, line = 0, 1
    with _open(path) as stream:
        rest = b""
        while piece := stream.read(BLOCK):
            rest += bytes(piece)
            while (end := rest.find(b"\n")) >= 0:
                text, rest = rest[: end + 1], rest[end + 1 :]
                at, line = at + len(text), line + 1
                if text.strip():
                    return _csv_names(text, options), Place(at, line)
    return _csv_names(rest, options) if rest.strip() else [], Place(at + len(rest), line + 1)


def _csv_names(text: bytes, options: Options) -> list[str]:
    header = _csv_read(options, None, len(text) + 1)
    names: list[str] = pyarrow.csv.read_csv(pa.BufferReader(text), header, _csv_parse(options)).column_names
    return names


def _csv_stream(path: Path, schema: pa.Schema, options: Options, header: bool) -> Iterator[Piece]:
    """Rows with newlines in them: only Arrow finds where one ends, and it does not return it."""
    with _open(path) as stream:
        try:
            names = None if header else schema.names
            batches = pyarrow.csv.open_csv(
                stream, _csv_read(options, names, BLOCK), _csv_parse(options), _csv_convert(schema, options)
            )
            line = 2 if header else 1
            for batch in batches:
                yield Piece(_parse_times(pa.Table.from_batches([batch]), schema, line), None)
                line += batch.num_rows
        except pa.ArrowInvalid as error:
            if "Empty CSV file" not in str(error):
                raise _csv_error(error, 1, header) from error


def _csv_read(options: Options, names: list[str] | None, block: int) -> pyarrow.csv.ReadOptions:
    # One thread: only then does Arrow know the line of an error.
    return pyarrow.csv.ReadOptions(
        use_threads=False, block_size=block, column_names=names, encoding=options.get("encoding", "utf8")
    )


def _csv_parse(options: Options) -> pyarrow.csv.ParseOptions:
    return pyarrow.csv.ParseOptions(
        delimiter=options.get("delimiter", options.get("sep", ",")),
        quote_char=options.get("quote", '"'),
        escape_char=options.get("escape", False),
        newlines_in_values=bool(options.get("multiLine", False)),
    )


def _csv_convert(schema: pa.Schema, options: Options) -> pyarrow.csv.ConvertOptions:
    # Times in a zone are read as text: Arrow would refuse those that do not name a zone.
    texts = {field.name: pa.string() if _zoned(field.type) else field.type for field in schema}
    return pyarrow.csv.ConvertOptions(
        column_types=texts,
        include_columns=schema.names,
        null_values=[str(options.get("nullValue", ""))],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )


def _csv_error(error: Exception, first_line: int, header: bool) -> Exception:
    why = str(error).splitlines()[0]
    found = _ROW.search(why)
    if found is None:
        return error
    line = first_line + int(found[1]) - 1
    fix = "correct the line, or change the schema"
    if line == 1 and not header:
        fix += "; if it is a line of column names, pass options={'header': True}"
    return _bad_line(line, why, fix)


def _json(path: Path, schema: pa.Schema, _: Options, start: Place) -> Iterator[Piece]:
    for line, block, after in _line_blocks(path, start):
        if not block.strip():
            continue
        try:
            table = json_rows(block, schema, line)
        except pa.ArrowInvalid as error:
            why = str(error).splitlines()[0]
            found = _ROW.search(why)
            raise _bad_line(
                line + (int(found[1]) if found else 0),
                why,
                "write one JSON object a line, with values of the schema's types",
            ) from error
        yield Piece(table, after)


def json_rows(block: bytes, schema: pa.Schema, line: int = 1) -> pa.Table:
    """The rows of whole lines, of which the first has this number."""
    texts = pa.schema([f.with_type(pa.string()) if _zoned(f.type) else f for f in schema])
    parse = pyarrow.json.ParseOptions(explicit_schema=texts, unexpected_field_behavior="ignore")
    whole = pyarrow.json.ReadOptions(use_threads=False, block_size=len(block) + 1)
    return _parse_times(pyarrow.json.read_json(pa.BufferReader(block), whole, parse), schema, line)


def _text(path: Path, schema: pa.Schema, _: Options, start: Place) -> Iterator[Piece]:
    for line, block, after in _line_blocks(path, start):
        try:
            text = block.decode()
        except UnicodeDecodeError as error:
            bad = line + block[: error.start].count(b"\n")
            raise _bad_line(bad, f"it is not UTF-8: {error.reason}", "convert the file to UTF-8") from error
        lines = text.removesuffix("\n").split("\n")
        rows = pa.table({schema.names[0]: pa.array([item.removesuffix("\r") for item in lines], pa.string())})
        yield Piece(rows, after)


def _parquet(path: Path, schema: pa.Schema, _: Options, start: Place) -> Iterator[Piece]:
    with pyarrow.parquet.ParquetFile(path) as file:
        there = file.schema_arrow.names
        wanted = [name for name in schema.names if name in there]
        for group in range(start.at, file.num_row_groups):
            left = file.metadata.row_group(group).num_rows
            for batch in file.iter_batches(1 << 15, row_groups=[group], columns=wanted, use_threads=False):
                left -= batch.num_rows
                yield Piece(pa.Table.from_batches([batch]), None if left else Place(group + 1))


def _line_blocks(path: Path, start: Place) -> Iterator[tuple[int, bytes, Place]]:
    """Pieces of whole lines with the number of their first line, and where the next piece begins."""
    place, rest = start, b""
    with _open(path) as stream:
        _skip(stream, start.at)
        while piece := stream.read(BLOCK):
            head, newline, tail = (rest + bytes(piece)).rpartition(b"\n")
            if newline:
                after = Place(place.at + len(head) + 1, place.line + head.count(b"\n") + 1)
                yield place.line, head + newline, after
                place = after
            rest = tail
    if rest:
        yield place.line, rest, Place(place.at + len(rest), place.line + 1)


def _skip(stream: Any, count: int) -> None:
    """Goes to a byte; packed files have to be unpacked up to there, which is still faster than to read their rows."""
    if stream.seekable():
        stream.seek(count)
        return
    while count > 0 and (piece := stream.read(min(count, BLOCK))):
        count -= len(piece)


def _zoned(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind)) and kind.tz is not None


def _parse_times(table: pa.Table, schema: pa.Schema, line: int) -> pa.Table:
    for i, field in enumerate(schema):
        if _zoned(field.type):
            texts = table.column(field.name)
            try:
                times = _times(texts, field.type)
            except pa.ArrowInvalid as error:
                bad = next((n for n in range(len(texts)) if _fails(texts.slice(n, 1), field.type)), 0)
                raise _bad_line(
                    line + bad, f"column '{field.name}': {error}", "write times as 2013-01-01 00:00:00"
                ) from error
            table = table.set_column(table.column_names.index(schema.names[i]), field, times)
    return table


def _times(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Times with a zone in their own, times without one in UTC, also mixed."""
    zoned = pc.match_substring_regex(texts, _TIME_ZONE)
    nothing = pa.scalar(None, pa.string())
    own = pc.cast(pc.if_else(zoned, texts, nothing), kind)
    utc = pc.cast(pc.if_else(zoned, nothing, texts), pa.timestamp("us")).cast(kind)
    return pc.coalesce(own, utc)


_TIME_ZONE = r"\d[Tt ]\d.*(?:[Zz]|[+-]\d{2}(?::?\d{2})?)$"
"""A zone follows a time of day; the day and month of a bare date are not one."""


def _fails(text: pa.ChunkedArray, kind: pa.DataType) -> bool:
    try:
        _times(text, kind)
    except pa.ArrowInvalid:
        return True
    return False


FORMATS: dict[str, Callable[[Path, pa.Schema, Options, Place], Iterator[Piece]]] = {
    "csv": _csv,
    "json": _json,
    "text": _text,
    "parquet": _parquet,
}
