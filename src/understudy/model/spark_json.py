"""Spark's JSON form of a schema, which `StructType.fromJson` reads without a JVM."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from understudy.model import ddl


def to_json(schema: pa.Schema) -> dict[str, Any]:
    """For a schema made by `understudy.model.schema.parse`: every field nullable."""
    return {"type": "struct", "fields": [_field_json(field) for field in schema]}


def _field_json(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": _type_json(field.type), "nullable": True, "metadata": {}}


def _type_json(kind: pa.DataType) -> Any:
    if pt.is_map(kind):
        key, item = _type_json(kind.key_type), _type_json(kind.item_type)
        return {"type": "map", "keyType": key, "valueType": item, "valueContainsNull": True}
    if pt.is_list(kind):
        return {"type": "array", "elementType": _type_json(kind.value_type), "containsNull": True}
    if pt.is_struct(kind):
        return {"type": "struct", "fields": [_field_json(field) for field in kind]}
    if pt.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _WORDS[kind]


_WORDS = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    ddl.TIMESTAMP: "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
    pa.time64("ns"): "time(6)",
    pa.duration("us"): "interval day to second",
    pa.null(): "void",
}
