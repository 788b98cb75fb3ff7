"""Python rows as Arrow tables: tuples, lists, Spark's Rows, or batches that are Arrow already."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from understudy.errors import InvalidInput
from understudy.model.schema import conform

if TYPE_CHECKING:
    from collections.abc import Iterable


def to_table(items: Iterable[Any], schema: pa.Schema, origin: str) -> pa.Table:
    """All items in their order; record batches and rows may come mixed."""
    tables = []
    for is_batch, run in groupby(items, lambda item: isinstance(item, pa.RecordBatch)):
        batches = list(run)
        tables += [_from_batch(b, schema) for b in batches] if is_batch else [_from_rows(batches, schema, origin)]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _from_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    return conform(pa.Table.from_batches([batch]), schema)


def _from_rows(rows: list[Any], schema: pa.Schema, origin: str) -> pa.Table:
    width = len(schema)
    plain = [_in_order(row, schema.names, origin) for row in rows]
    for row in plain:
        if len(row) != width:
            raise InvalidInput(
                f"{origin} returned a row of {len(row)} values",
                why=f"its schema has {width} columns: {', '.join(schema.names)}",
                fix="return one value per column, in the schema's order",
            )
    columns = []
    for i, field in enumerate(schema):
        try:
            columns.append(pa.array([_plain(row[i], field.type) for row in plain], field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InvalidInput(
                f"{origin} returned a value for column '{field.name}' that is no {field.type}",
                why=str(error).splitlines()[0],
                fix="return values of the schema's types, or change the schema",
            ) from error
    return pa.Table.from_arrays(columns, schema=schema)


def _in_order(row: Any, names: list[str], origin: str) -> Any:
    """Rows made with names are read by name, as Spark does; others by position."""
    fields = getattr(row, "__fields__", None)
    if fields is None or sorted(fields) != sorted(names):
        if isinstance(row, tuple | list):
            return row
        raise InvalidInput(
            f"{origin} returned {type(row).__name__}",
            why="a row is a tuple, a list or a Row",
            fix="yield tuples with one value per column",
        )
    return [row[fields.index(name)] for name in names]


def _plain(value: Any, kind: pa.DataType) -> Any:
    """What Arrow understands for nested values: Spark takes tuples for structs and dicts for maps."""
    if value is None:
        return None
    if pt.is_struct(kind):
        if not isinstance(value, dict):
            names = getattr(value, "__fields__", None) or [field.name for field in kind]
            value = dict(zip(names, value, strict=True))
        return {field.name: _plain(value.get(field.name), field.type) for field in kind}
    if pt.is_map(kind):
        pairs = value.items() if isinstance(value, dict) else value
        return [(_plain(k, kind.key_type), _plain(v, kind.item_type)) for k, v in pairs]
    if pt.is_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    return value
