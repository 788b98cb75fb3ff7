"""Whether rows fit into a table that is there already: for tables that describe themselves in Arrow's types."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from understudy.errors import InvalidInput
from understudy.model.schema import parse


def check_fit(target: str, there: pa.Schema, rows: pa.Schema) -> None:
    """Refuses a table whose columns are not those of the rows; the error names every difference.

    Parameters
    ----------
    target
        How the table is called in an error.
    there, rows
        The columns of the table and of the rows. Their order does not count, and neither do spellings of one type,
        such as string and large_string.

    Raises
    ------
    InvalidInput
        If a column is missing, has another type, or is there and not in the rows.

    Examples
    --------
    >>> check_fit("table t", pa.schema([("n", pa.int32())]), pa.schema([("n", pa.int64())]))
    Traceback (most recent call last):
        ...
    understudy.errors.InvalidInput: table t does not fit the rows: column 'n' is int32 and the rows have int64
      ...
    """
    found = differences(parse(there), parse(rows))
    if found:
        raise InvalidInput(
            f"{target} does not fit the rows: {'; '.join(found)}",
            why="rows are written as they are: no column is converted, dropped or left empty",
            fix="change the table, let the operator return other columns, or name a table that does not exist yet",
        )


def differences(there: pa.Schema, rows: pa.Schema) -> list[str]:
    found = [f"column '{field.name}' is missing" for field in rows if field.name not in there.names]
    found += [
        f"column '{field.name}' is {there.field(field.name).type} and the rows have {field.type}"
        for field in rows
        if field.name in there.names and there.field(field.name).type != field.type
    ]
    return found + [f"the rows have no column '{field.name}'" for field in there if field.name not in rows.names]


def check_types(system: str, schema: pa.Schema) -> None:
    """Refuses columns that neither Delta nor Iceberg has a type for."""
    for column in schema:
        kind = column.type
        if pt.is_duration(kind) or pt.is_time(kind) or pt.is_null(kind):
            raise InvalidInput(
                f"column '{column.name}' cannot be written to a table of {system}",
                why=f"{system} has no type for {kind}",
                fix="cast the column in the operator, for example to long or string",
            )
