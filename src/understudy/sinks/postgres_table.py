"""Tables of PostgreSQL for Arrow rows: made, compared with the rows, filled."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from understudy.errors import InvalidInput
from understudy.sinks.jsonlines import plain

if TYPE_CHECKING:
    from psycopg import Connection

Columns = Mapping[str, str]
"""The names of columns and the types PostgreSQL gives them."""


@dataclass(frozen=True)
class Target:
    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


def split(table: str) -> Target:
    """`counts` or `sales.counts`; without a schema it is the connection's."""
    parts = str(table).split(".")
    if len(parts) > 2 or not all(parts):
        raise InvalidInput(
            f"'{table}' is no name of a table", why="a table is called name or schema.name", fix='write table="counts"'
        )
    return Target(parts[0] if len(parts) == 2 else "", parts[-1])


def resolve(connection: Connection[Any], table: str) -> Target:
    """The table with its schema: where it would be created."""
    target = split(table)
    if target.schema:
        return target
    found = connection.execute("SELECT current_schema()").fetchone()
    if found is None or found[0] is None:
        raise InvalidInput(
            f"table {table} has no schema",
            why="the connection's search_path names none that exists",
            fix='name the schema, like table="public.counts"',
        )
    return Target(str(found[0]), target.name)


def exists(connection: Connection[Any], target: Target) -> bool:
    query = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = %s"
    return connection.execute(query, [target.schema, target.name]).fetchone() is not None


def columns(schema: pa.Schema) -> Columns:
    return {field.name: column_type(field.type) for field in schema}


def column_type(kind: pa.DataType) -> str:
    """The type of PostgreSQL that holds every value of an Arrow type; nested types become jsonb.

    Examples
    --------
    >>> column_type(pa.list_(pa.int32()))
    'integer[]'
    >>> column_type(pa.decimal128(10, 2))
    'numeric(10,2)'
    """
    if pt.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if pt.is_list(kind) and not pt.is_nested(kind.value_type):
        return f"{column_type(kind.value_type)}[]"
    if pt.is_nested(kind):
        return "jsonb"
    return next((name for matches, name in _TYPES if matches(kind)), "text")


_TYPES: list[tuple[Any, str]] = [
    (lambda k: k in (pa.int8(), pa.int16()), "smallint"),
    (pt.is_int32, "integer"),
    (pt.is_integer, "bigint"),
    (pt.is_float32, "real"),
    (pt.is_floating, "double precision"),
    (pt.is_boolean, "boolean"),
    (pt.is_binary, "bytea"),
    (pt.is_date, "date"),
    (lambda k: pt.is_timestamp(k) and k.tz is not None, "timestamp with time zone"),
    (pt.is_timestamp, "timestamp without time zone"),
    (pt.is_time, "time without time zone"),
    (pt.is_duration, "interval"),
]

_WIDER: dict[str, tuple[str, ...]] = {
    "smallint": ("integer", "bigint", "numeric"),
    "integer": ("bigint", "numeric"),
    "bigint": ("numeric",),
    "real": ("double precision",),
    "text": ("character varying",),
    "jsonb": ("json",),
}
_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)$")


def holds(there: str, wanted: str) -> bool:
    """Whether a column of one type takes every value of the other unchanged.

    Examples
    --------
    >>> holds("bigint", "integer"), holds("integer", "bigint"), holds("numeric(12,2)", "numeric(10,2)")
    (True, False, True)
    """
    if there == wanted or there in _WIDER.get(wanted, ()):
        return True
    if wanted.endswith("[]") and there.endswith("[]"):
        return holds(there[:-2], wanted[:-2])
    ours, theirs = _NUMERIC.match(wanted), _NUMERIC.match(there)
    if ours is None:
        return False
    if theirs is None:
        return there == "numeric"
    (precision, scale), (room, digits) = (tuple(map(int, one.groups())) for one in (ours, theirs))
    return digits >= scale and room - digits >= precision - scale


def create(connection: Connection[Any], target: Target, wanted: Columns, key: Sequence[str]) -> None:
    """Creates the table where it is missing."""
    from psycopg import sql

    _check_key(target, wanted, key)
    if exists(connection, target):
        # CREATE … IF NOT EXISTS would ask for the right to create tables.
        return
    parts = [sql.SQL("{} " + kind).format(sql.Identifier(name)) for name, kind in wanted.items()]
    if key:
        parts.append(sql.SQL("PRIMARY KEY ({})").format(_names(key)))
    connection.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(_table(target), sql.SQL(", ").join(parts)))


def check(connection: Connection[Any], target: Target, wanted: Columns, key: Sequence[str]) -> None:
    """Refuses a table that does not take these columns; the error names every difference."""
    found = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull AND NOT (atthasdef OR attidentity <> '')"
        " FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid JOIN pg_namespace n ON n.oid = relnamespace"
        " WHERE nspname = %s AND relname = %s AND attnum > 0 AND NOT attisdropped",
        [target.schema, target.name],
    ).fetchall()
    different = differences({name: kind for name, kind, _ in found}, wanted, [name for name, _, must in found if must])
    if key and not different and not _is_unique(connection, target, key):
        different = [f"no unique index on exactly ({', '.join(key)})"]
    if different:
        raise InvalidInput(
            f"table {target} does not fit the rows: {'; '.join(different)}",
            why="rows are written as they are: no column is converted, dropped or left empty that must be filled",
            fix="change the table, let the operator return other columns, or name a table that does not exist yet",
        )


def differences(there: Columns, wanted: Columns, must: Sequence[str]) -> list[str]:
    """What keeps rows with the columns `wanted` out of a table; `must` are its columns that cannot be left out."""
    found = [f"column '{name}' is missing" for name in wanted if name not in there]
    found += [
        f"column '{name}' is {there[name]} and the rows have {kind}"
        for name, kind in wanted.items()
        if name in there and not holds(there[name], kind)
    ]
    return found + [f"column '{name}' must be filled and the rows have none" for name in must if name not in wanted]


def _check_key(target: Target, wanted: Columns, key: Sequence[str]) -> None:
    missing = [name for name in key if name not in wanted]
    if missing:
        raise InvalidInput(
            f"the rows for table {target} have no column '{missing[0]}', which is the key",
            why=f"their columns are {', '.join(wanted)}",
            fix="name columns of the rows as the key",
        )


def _is_unique(connection: Connection[Any], target: Target, key: Sequence[str]) -> bool:
    found = connection.execute(
        "SELECT array_agg(attname::text) FROM pg_index JOIN pg_class c ON c.oid = indrelid"
        " JOIN pg_namespace n ON n.oid = relnamespace"
        " JOIN pg_attribute ON attrelid = c.oid AND attnum = ANY (indkey)"
        " WHERE nspname = %s AND relname = %s AND indisunique AND indpred IS NULL AND indexprs IS NULL"
        " GROUP BY indexrelid",
        [target.schema, target.name],
    ).fetchall()
    return any(sorted(names) == sorted(key) for (names,) in found)


def put(connection: Connection[Any], target: Target, kinds: Columns, rows: pa.Table, key: Sequence[str]) -> None:
    """Copies the rows into the table; with a key the last row of each replaces the one that is there."""
    from psycopg import sql

    if not rows.num_rows:
        return
    values = _encoded(rows, kinds)
    into, names = _table(target), _names(rows.column_names)
    if key:
        _check_filled(target, rows, key)
        values = _last_of_each(values, [rows.column_names.index(name) for name in key])
        into = sql.Identifier("understudy_epoch")
        empty = "CREATE TEMP TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA"
        connection.execute(sql.SQL(empty).format(into, names, _table(target)))
    with connection.cursor().copy(sql.SQL("COPY {} ({}) FROM STDIN").format(into, names)) as copy:
        for value in values:
            copy.write_row(value)
    if key:
        connection.execute(_upsert(target, into, rows.column_names, key))


def _upsert(target: Target, into: Any, names: Sequence[str], key: Sequence[str]) -> Any:
    from psycopg import sql

    others = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in names if name not in key]
    action = sql.SQL("UPDATE SET {}").format(sql.SQL(", ").join(others)) if others else sql.SQL("NOTHING")
    return sql.SQL("INSERT INTO {0} ({1}) SELECT {1} FROM {2} ON CONFLICT ({3}) DO {4}").format(
        _table(target), _names(names), into, _names(key), action
    )


def _encoded(rows: pa.Table, kinds: Columns) -> list[tuple[Any, ...]]:
    from psycopg.types.json import Jsonb

    found = []
    for column in rows.columns:
        values = column.to_pylist()
        if column_type(column.type) == "jsonb":
            values = [None if value is None else Jsonb(plain(value, column.type)) for value in values]
        found.append(values)
    return list(zip(*found, strict=True)) if kinds else []


def _check_filled(target: Target, rows: pa.Table, key: Sequence[str]) -> None:
    empty = next((name for name in key if rows.column(name).null_count), None)
    if empty is not None:
        raise InvalidInput(
            f"a row for table {target} has no value in column '{empty}', which is the key",
            why="an upsert could not find such a row again",
            fix=f"drop or fill rows without '{empty}' in the operator",
        )


def _last_of_each(values: list[tuple[Any, ...]], key: Sequence[int]) -> list[tuple[Any, ...]]:
    return list({tuple(row[index] for index in key): row for row in values}.values())


def _table(target: Target) -> Any:
    from psycopg import sql

    return sql.Identifier(target.schema, target.name)


def _names(names: Sequence[str]) -> Any:
    from psycopg import sql

    return sql.SQL(", ").join(map(sql.Identifier, names))
