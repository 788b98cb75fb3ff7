"""Which table rows fit into, decided without a server."""

from __future__ import annotations

import pyarrow as pa
import pytest

from understudy.errors import InvalidInput
from understudy.sinks import Postgres
from understudy.sinks import postgres_table as tables


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.int8(), "smallint"),
        (pa.int64(), "bigint"),
        (pa.float32(), "real"),
        (pa.string(), "text"),
        (pa.timestamp("us", "UTC"), "timestamp with time zone"),
        (pa.timestamp("us"), "timestamp without time zone"),
        (pa.decimal128(38, 6), "numeric(38,6)"),
        (pa.list_(pa.string()), "text[]"),
        (pa.list_(pa.struct({"x": pa.int32()})), "jsonb"),
        (pa.map_(pa.string(), pa.int32()), "jsonb"),
    ],
)
def test_every_type_has_a_column(kind: pa.DataType, name: str) -> None:
    assert tables.column_type(kind) == name
    assert tables.holds(name, name)


@pytest.mark.parametrize(
    ("there", "wanted", "fits"),
    [
        ("bigint", "smallint", True),
        ("smallint", "bigint", False),
        ("numeric", "numeric(10,2)", True),
        ("numeric(10,3)", "numeric(10,2)", False),
        ("numeric(11,3)", "numeric(10,2)", True),
        ("bigint[]", "integer[]", True),
        ("text", "bigint", False),
        ("character varying", "text", True),
        ("character varying(10)", "text", False),
    ],
)
def test_a_column_takes_what_it_can_hold(there: str, wanted: str, fits: bool) -> None:
    assert tables.holds(there, wanted) is fits


def test_every_difference_is_named() -> None:
    there = {"word": "text", "count": "integer", "id": "bigint", "by": "text"}
    assert tables.differences(there, {"word": "text", "count": "bigint", "at": "date"}, ["id"]) == [
        "column 'at' is missing",
        "column 'count' is integer and the rows have bigint",
        "column 'id' must be filled and the rows have none",
    ]


@pytest.mark.parametrize("name", ["", "a.b.c", "a.", ".a"])
def test_a_name_is_one_or_two_words(name: str) -> None:
    with pytest.raises(InvalidInput, match="no name of a table"):
        Postgres("dbname=x", name)


def test_an_unreadable_connection_string_is_not_shown() -> None:
    with pytest.raises(InvalidInput) as caught:
        Postgres("host=db password", "t")
    assert "host=db" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_key_belongs_to_an_upsert() -> None:
    with pytest.raises(InvalidInput, match="and no key"):
        Postgres("", "t", mode="upsert")
    with pytest.raises(InvalidInput, match="and a key"):
        Postgres("", "t", key="word")
    with pytest.raises(InvalidInput, match="no such choice"):
        Postgres("", "t", mode="replace")  # type: ignore[arg-type]
    assert Postgres("", "t", "upsert", key=["a", "b"]) == Postgres("", "t", "upsert", key=("a", "b"))
