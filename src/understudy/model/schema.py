"""What rows look like, in the Arrow types Spark itself uses: no column changes its type on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from understudy.errors import InvalidInput
from understudy.model import ddl

SchemaLike = Any
"""A DDL string, a pyarrow Schema, a mapping from name to type, or Spark's StructType."""


def parse(schema: SchemaLike) -> pa.Schema:
    """The Arrow schema Spark would use; all columns nullable, no metadata."""
    fields = _fields(schema)
    names = [field.name.lower() for field in fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(
            f"the schema names '{twice[0]}' twice",
            why="Spark tells columns apart by name and does not look at upper and lower case",
            fix="rename one of the columns",
        )
    return pa.schema(fields)


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table's columns in the schema's order and types, matched by name; other columns are dropped.

    Only casts that lose nothing are made, with one exception: times are cut to Spark's microseconds.
    """
    if table.schema.equals(schema, check_metadata=True):
        return table
    columns = [_cast(_column(table, field), field) for field in schema]
    if not columns:
        return table.select([]).replace_schema_metadata(None)
    return pa.Table.from_arrays(columns, schema=schema.remove_metadata())


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    found = table.schema.get_all_field_indices(field.name)
    if len(found) == 1:
        return table.column(found[0])
    raise InvalidInput(
        f"column '{field.name}' is there {len(found)} times" if found else f"column '{field.name}' is missing",
        why=f"the rows have the columns {', '.join(table.column_names) or '(none)'}",
        fix=f"make exactly one column '{field.name}' of type {field.type}, or change the schema",
    )


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type.equals(field.type):
        return column
    try:
        return pc.cast(column, options=pc.CastOptions(target_type=field.type, allow_time_truncate=True))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidInput(
            f"column '{field.name}' cannot become {field.type}",
            why=f"it is {column.type}: {str(error).splitlines()[0]}",
            fix=f"make the column {field.type}, or change its type in the schema",
        ) from error


def _fields(schema: SchemaLike) -> list[pa.Field]:
    if isinstance(schema, str):
        return ddl.columns(schema)
    if isinstance(schema, pa.Schema):
        return [pa.field(field.name, _spark_type(field.type)) for field in schema]
    if isinstance(schema, Mapping):
        return [pa.field(str(name), _any_type(item)) for name, item in schema.items()]
    json = getattr(schema, "jsonValue", None)
    if json is not None:
        answer = _from_json(json())
        if pt.is_struct(answer):
            return list(answer)
    raise InvalidInput(
        f"{type(schema).__name__} is not a schema",
        why="a schema is a DDL string, a pyarrow Schema, a mapping from name to type or a Spark StructType",
        fix='write it as text: schema="word string, at timestamp"',
    )


def _any_type(item: Any) -> pa.DataType:
    if isinstance(item, pa.DataType):
        return _spark_type(item)
    if isinstance(item, str):
        return ddl.column_type(item)
    if hasattr(item, "jsonValue"):
        return _from_json(item.jsonValue())
    raise InvalidInput(
        f"{item!r} is not a type",
        why="a type is a word like 'string', a pyarrow type or a Spark type",
        fix="write the type as Spark does, like 'array<string>'",
    )


def _from_json(value: Any) -> pa.DataType:
    """The JSON form of Spark's types: words for plain ones, objects for nested ones."""
    if isinstance(value, str):
        return ddl.column_type(value)
    kind = value["type"]
    if kind == "array":
        return pa.list_(pa.field("element", _from_json(value["elementType"])))
    if kind == "map":
        return _map(_from_json(value["keyType"]), _from_json(value["valueType"]))
    if kind == "struct":
        return pa.struct([pa.field(f["name"], _from_json(f["type"])) for f in value["fields"]])
    if kind == "udt" and "sqlType" in value:
        return _from_json(value["sqlType"])
    raise InvalidInput(
        f"Spark type '{kind}' cannot be carried",
        why="it has no Arrow type that Spark reads back",
        fix="turn the column into plain columns or a struct",
    )


def _map(key: pa.DataType, item: pa.DataType) -> pa.DataType:
    return pa.map_(pa.field("key", key, nullable=False), pa.field("value", item))


_NARROW = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}


def _spark_type(kind: pa.DataType) -> pa.DataType:
    """The nearest type Spark has, for a type Arrow has."""
    nested = _nested(kind)
    if nested is not None:
        return nested
    for matches, answer in _FAMILIES:
        if matches(kind):
            return answer(kind)
    raise InvalidInput(
        f"Arrow type {kind} cannot be carried",
        why="Spark has no type for it",
        fix="cast the column to a type Spark knows, for example string or decimal(20,0)",
    )


def _nested(kind: pa.DataType) -> pa.DataType | None:
    if pt.is_map(kind):
        return _map(_spark_type(kind.key_type), _spark_type(kind.item_type))
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return pa.list_(pa.field("element", _spark_type(kind.value_type)))
    if pt.is_struct(kind):
        return pa.struct([pa.field(field.name, _spark_type(field.type)) for field in kind])
    if pt.is_dictionary(kind):
        return _spark_type(kind.value_type)
    return None


def _same(kind: pa.DataType) -> pa.DataType:
    return kind


def _decimal(kind: pa.DataType) -> pa.DataType:
    return pa.decimal128(kind.precision, kind.scale)


_FAMILIES: list[tuple[Any, Any]] = [
    (lambda k: k in _NARROW, _NARROW.__getitem__),
    (lambda k: pt.is_integer(k) and k != pa.uint64(), _same),
    (lambda k: pt.is_floating(k) or pt.is_boolean(k) or pt.is_date(k) or pt.is_null(k), _same),
    (lambda k: pt.is_string(k) or pt.is_large_string(k) or pt.is_string_view(k), lambda _: pa.string()),
    (lambda k: pt.is_binary(k) or pt.is_large_binary(k) or pt.is_binary_view(k), lambda _: pa.binary()),
    (lambda k: pt.is_decimal(k) and 0 <= k.scale <= k.precision <= 38, _decimal),
    (lambda k: pt.is_fixed_size_binary(k) and not pt.is_decimal(k), lambda _: pa.binary()),
    (pt.is_timestamp, lambda k: pa.timestamp("us") if k.tz is None else ddl.TIMESTAMP),
    (pt.is_time, lambda _: pa.time64("ns")),
    (pt.is_duration, lambda _: pa.duration("us")),
]
