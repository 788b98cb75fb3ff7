"""Files as a stream of Arrow tables: one function per format, never a whole file in memory."""

from __future__ import annotations

import lzma
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

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


def read(path: Path, file_format: str, schema: pa.Schema, options: Options) -> Iterator[pa.Table]:
    """The rows of one file in the schema's types; errors name the file and, where it is known, the line."""
    try:
        for batch in FORMATS[file_format](path, schema, options):
            yield conform(batch, schema)
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


def _csv(path: Path, schema: pa.Schema, options: Options) -> Iterator[pa.Table]:
    header = bool(options.get("header", False))
    delimiter = options.get("delimiter", options.get("sep", ","))
    # Times in a zone are read as text: Arrow would refuse those that do not name a zone.
    texts = {field.name: pa.string() if _zoned(field.type) else field.type for field in schema}
    null = str(options.get("nullValue", ""))
    with _open(path) as stream:
        try:
            batches = pyarrow.csv.open_csv(
                stream,
                # One thread: only then does Arrow know the line of an error.
                pyarrow.csv.ReadOptions(
                    use_threads=False,
                    block_size=BLOCK,
                    column_names=None if header else schema.names,
                    encoding=options.get("encoding", "utf8"),
                ),
                pyarrow.csv.ParseOptions(
                    delimiter=delimiter,
                    quote_char=options.get("quote", '"'),
                    escape_char=options.get("escape", False),
                    newlines_in_values=bool(options.get("multiLine", False)),
                ),
                pyarrow.csv.ConvertOptions(
                    column_types=texts,
                    include_columns=schema.names,
                    null_values=[null],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            line = 2 if header else 1
            for batch in batches:
                yield _parse_times(pa.Table.from_batches([batch]), schema, line)
                line += batch.num_rows
        except pa.ArrowKeyError as error:
            raise InvalidInput(
                str(error).strip("'\""),
                why=f"the schema has the columns {', '.join(schema.names)}",
                fix="name columns as the file's first line does, or leave the header option away",
            ) from error
        except pa.ArrowInvalid as error:
            if "Empty CSV file" not in str(error):
                raise _csv_error(error, header) from error


def _csv_error(error: Exception, header: bool) -> Exception:
    why = str(error).splitlines()[0]
    found = _ROW.search(why)
    if found is None:
        return error
    line = int(found[1])
    fix = "correct the line, or change the schema"
    if line == 1 and not header:
        fix += "; if it is a line of column names, pass options={'header': True}"
    return _bad_line(line, why, fix)


def _json(path: Path, schema: pa.Schema, _: Options) -> Iterator[pa.Table]:
    texts = pa.schema([f.with_type(pa.string()) if _zoned(f.type) else f for f in schema])
    parse = pyarrow.json.ParseOptions(explicit_schema=texts, unexpected_field_behavior="ignore")
    for line, block in _line_blocks(path):
        if not block.strip():
            continue
        whole = pyarrow.json.ReadOptions(use_threads=False, block_size=len(block) + 1)
        try:
            table = pyarrow.json.read_json(pa.BufferReader(block), whole, parse)
        except pa.ArrowInvalid as error:
            why = str(error).splitlines()[0]
            found = _ROW.search(why)
            raise _bad_line(
                line + (int(found[1]) if found else 0),
                why,
                "write one JSON object a line, with values of the schema's types",
            ) from error
        yield _parse_times(table, schema, line)


def _text(path: Path, schema: pa.Schema, _: Options) -> Iterator[pa.Table]:
    for line, block in _line_blocks(path):
        try:
            text = block.decode()
        except UnicodeDecodeError as error:
            bad = line + block[: error.start].count(b"\n")
            raise _bad_line(bad, f"it is not UTF-8: {error.reason}", "convert the file to UTF-8") from error
        lines = text.removesuffix("\n").split("\n")
        yield pa.table({schema.names[0]: pa.array([item.removesuffix("\r") for item in lines], pa.string())})


def _parquet(path: Path, schema: pa.Schema, _: Options) -> Iterator[pa.Table]:
    with pyarrow.parquet.ParquetFile(path) as file:
        there = file.schema_arrow.names
        wanted = [name for name in schema.names if name in there]
        for batch in file.iter_batches(batch_size=1 << 15, columns=wanted, use_threads=False):
            yield pa.Table.from_batches([batch])


def _line_blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Pieces of whole lines with the number of their first line."""
    line, rest = 1, b""
    with _open(path) as stream:
        while piece := stream.read(BLOCK):
            head, newline, tail = (rest + bytes(piece)).rpartition(b"\n")
            if newline:
                yield line, head + newline
                line += head.count(b"\n") + 1
            rest = tail
    if rest:
        yield line, rest


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


FORMATS: dict[str, Callable[[Path, pa.Schema, Options], Iterator[pa.Table]]] = {
    "csv": _csv,
    "json": _json,
    "text": _text,
    "parquet": _parquet,
}
