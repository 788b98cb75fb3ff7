"""Records of a message log as rows: decoded together, and one by one only where one of them is bad."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.types as pt

from understudy.errors import InvalidInput, Unavailable
from understudy.model.schema import conform
from understudy.sources import formats

Format = Literal["json", "csv", "raw", "avro"]
Parse = Callable[[Sequence[bytes]], pa.Table]

_TIME = pa.timestamp("us", "UTC")
_MAPS = [
    pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", kind)) for kind in ("string", "binary")
]
META: dict[str, list[pa.DataType]] = {
    "kafka_key": [pa.string(), pa.binary()],
    "kafka_headers": _MAPS,
    "kafka_topic": [pa.string()],
    "kafka_partition": [pa.int32(), pa.int64()],
    "kafka_offset": [pa.int64()],
    "kafka_timestamp": [_TIME],
}
"""Columns that hold what Kafka says of a record, and the types they may have."""


@dataclass(frozen=True)
class Record:
    topic: str
    partition: int
    offset: int
    value: bytes | None
    key: bytes | None = None
    time_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def __str__(self) -> str:
        return f"topic '{self.topic}', partition {self.partition}, offset {self.offset}"


class Bad(NamedTuple):
    """A record that is no row, and why."""

    record: Record
    why: str


def payload(schema: pa.Schema) -> pa.Schema:
    """The columns that come from the record's value."""
    return pa.schema([field for field in schema if field.name not in META])


def check(schema: pa.Schema, form: Format) -> None:
    """Refuses a schema that records of this format cannot fill."""
    for field in schema:
        if field.name in META and field.type not in META[field.name]:
            raise InvalidInput(
                f"column '{field.name}' has type {field.type}",
                why=f"this name stands for what Kafka says of a record, which is {META[field.name][0]}",
                fix=f"give it the type {' or '.join(map(str, META[field.name]))}, or another name",
            )
    own = payload(schema)
    if form == "raw" and not (len(own) == 0 or (len(own) == 1 and own.field(0).type in (pa.string(), pa.binary()))):
        raise InvalidInput(
            f"raw records cannot fill the columns {', '.join(own.names)}",
            why="a raw record has one value, text or bytes",
            fix='write schema="value string", and the columns of Kafka you need',
        )


def parser(form: Format, schema: pa.Schema, writer: Any = None) -> Parse:
    """The function that makes a table of values; it raises if one of them does not fit.

    `writer` is for avro: the schema the records were written with, or the address of a schema registry.
    """
    own = payload(schema)
    if form == "avro":
        return partial(_avro, own, registered(writer) if is_address(writer) else written_with(writer))
    return partial({"json": _json, "csv": _csv, "raw": _raw}[form], own)


def decode(records: Sequence[Record], schema: pa.Schema, parse: Parse) -> tuple[pa.Table, list[Bad]]:
    """The rows of records, in their order, and the records that are none.

    A record without a value, a tombstone, is a row of nulls with the columns of Kafka filled.
    """
    own = payload(schema)
    filled = [index for index, record in enumerate(records) if record.value is not None]
    if len(own):
        table, good, bad = _sound([records[i].value or b"" for i in filled], parse, own)
    else:
        table, good, bad = None, list(range(len(filled))), []
    rejected = {filled[index]: why for index, why in bad}
    kept = [index for index in range(len(records)) if index not in rejected]
    place = {filled[index]: number for number, index in enumerate(good)}
    columns = {}
    if table is not None:
        rows = table.take(pa.array([place.get(index) for index in kept], pa.int64()))
        columns = {name: rows.column(name) for name in own.names}
    chosen = [records[index] for index in kept]
    for field in schema:
        if field.name in META:
            columns[field.name] = pa.array([_meta(record, field) for record in chosen], field.type)
    arrays = [columns[field.name] for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema), [Bad(records[i], why) for i, why in rejected.items()]


def _meta(record: Record, field: pa.Field) -> Any:
    kind = field.type
    if field.name == "kafka_key":
        return _text(record.key) if pt.is_string(kind) else record.key
    if field.name == "kafka_headers":
        texts = pt.is_string(kind.item_type)
        return list({name: _text(value) if texts else value for name, value in record.headers}.items())
    if field.name == "kafka_timestamp":
        return None if record.time_ms is None else record.time_ms * 1000
    return getattr(record, field.name.removeprefix("kafka_"))


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


Sound = tuple[pa.Table, list[int], list[tuple[int, str]]]


def _sound(values: Sequence[bytes], parse: Parse, schema: pa.Schema, first: int = 0) -> Sound:
    """The rows of those values that are sound, with their numbers, and what is wrong with the others.

    All are parsed at once; if that fails, the two halves are, and so on down to the bad ones.
    """
    if not values:
        return schema.empty_table(), [], []
    try:
        table = conform(parse(values), schema)
        why = f"it holds {table.num_rows} rows"
        if table.num_rows == len(values):
            return table, list(range(first, first + len(values))), []
    except InvalidInput as error:
        why = f"{error.what}: {error.why}"
    except Unavailable:
        raise
    except (pa.ArrowException, ValueError, TypeError, LookupError, EOFError, OverflowError, struct.error) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
    if len(values) == 1:
        return schema.empty_table(), [], [(first, why)]
    half = len(values) // 2
    left = _sound(values[:half], parse, schema, first)
    right = _sound(values[half:], parse, schema, first + half)
    return pa.concat_tables([left[0], right[0]]), left[1] + right[1], left[2] + right[2]


def _json(schema: pa.Schema, values: Sequence[bytes]) -> pa.Table:
    # Between words a newline is a space. Braces at both ends keep a record from being continued by the next one.
    rows = [value.strip().replace(b"\n", b" ").replace(b"\r", b" ") for value in values]
    if not all(row.startswith(b"{") and row.endswith(b"}") for row in rows):
        raise ValueError("it is not a JSON object")
    return formats.json_rows(b"\n".join(rows) + b"\n", schema)


def _csv(schema: pa.Schema, values: Sequence[bytes]) -> pa.Table:
    rows = [value.rstrip(b"\r\n") for value in values]
    if any(b"\n" in row or not row or row.count(b'"') % 2 for row in rows):
        raise ValueError("it is not one line of CSV")
    return formats.csv_rows(b"\n".join(rows) + b"\n", schema.names, schema, {})


def _raw(schema: pa.Schema, values: Sequence[bytes]) -> pa.Table:
    texts = pt.is_string(schema.field(0).type)
    return pa.Table.from_arrays(
        [pa.array([v.decode() if texts else v for v in values], schema.types[0])], schema=schema
    )


Unpack = Callable[[bytes], Any]


def _avro(schema: pa.Schema, unpack: Unpack, values: Sequence[bytes]) -> pa.Table:
    return pa.Table.from_pylist([unpack(value) for value in values], schema=schema)


def is_address(writer: object) -> bool:
    return isinstance(writer, str) and writer.startswith(("http://", "https://"))


def written_with(writer: Mapping[str, Any] | str) -> Unpack:
    """Reads Avro records without a header that were all written with one schema."""
    from fastavro import parse_schema, schemaless_reader

    try:
        parsed = parse_schema(json.loads(writer) if isinstance(writer, str) else dict(writer))
    except Exception as error:
        # Whatever the library stumbles over, the schema is not one.
        raise InvalidInput(
            "the Avro schema of a Kafka source cannot be read",
            why=str(error).splitlines()[0] if str(error) else type(error).__name__,
            fix="pass the schema the records were written with, as JSON text or as a dict",
        ) from error

    def unpack(value: bytes) -> Any:
        stream = io.BytesIO(value)
        found = schemaless_reader(stream, parsed, None)
        if stream.read(1):
            raise ValueError("bytes are left over behind the record")
        return found

    return unpack


def registered(address: str) -> Unpack:
    """Reads Avro records with the header of a schema registry: a zero byte and the number of the writer's schema."""

    @cache
    def reader(number: int) -> Unpack:
        return written_with(fetch_schema(address, number))

    def unpack(value: bytes) -> Any:
        if len(value) < 5 or value[0] != 0:
            raise ValueError("it has no header of a schema registry")
        return reader(int.from_bytes(value[1:5], "big"))(value[5:])

    return unpack


def fetch_schema(address: str, number: int) -> str:
    """The schema with this number, over the registry's HTTP interface."""
    import httpx

    where = httpx.URL(address.rstrip("/") + f"/schemas/ids/{number}")
    shown = str(where.copy_with(username=None, password=None))
    try:
        answer = httpx.get(where, timeout=10.0)
    except httpx.HTTPError as error:
        raise _no_registry(shown, str(error)) from error
    if answer.status_code == 404:
        raise ValueError(f"the schema registry knows no schema {number}")
    found = answer.json() if answer.status_code == 200 else {}
    if found.get("schemaType", "AVRO") != "AVRO" or found.get("references"):
        raise ValueError(f"schema {number} is not an Avro schema that stands alone")
    if "schema" not in found:
        raise _no_registry(shown, f"it answered with status {answer.status_code}")
    return str(found["schema"])


def _no_registry(shown: str, why: str) -> Unavailable:
    return Unavailable(
        f"the schema registry did not answer {shown}",
        why=why,
        fix="check the address and that the registry runs; then go on with --resume",
    )
