"""Schemas in every spelling give the Arrow types Spark uses."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from understudy.errors import InvalidInput
from understudy.model.schema import conform, parse

UTC = pa.timestamp("us", tz="UTC")
ALL_TYPES = (
    "a boolean, b byte, c tinyint, d short, e smallint, f int, g integer, h long, i bigint, j float, k real, "
    "l double, m string, p binary, q date, r timestamp, s timestamp_ntz, t timestamp_ltz, "
    "u decimal, v decimal(5), w decimal(10,2), x dec(7, 3), y numeric(38,38), z void, "
    "aa array<string>, bb array<array<int>>, cc map<string,array<double>>, "
    "dd struct<x:double,y:struct<z:timestamp NOT NULL, `q r`: int COMMENT 'it''s'>>, "
    "`odd ``name` int NOT NULL COMMENT 'with, comma <and> brackets', ee interval day to second"
)


def test_the_spelling_of_the_issue() -> None:
    schema = parse("word string, at timestamp, tags array<string>, p struct<x:double,y:double>, d decimal(10,2)")
    assert schema == pa.schema(
        {
            "word": pa.string(),
            "at": UTC,
            "tags": pa.list_(pa.field("element", pa.string())),
            "p": pa.struct({"x": pa.float64(), "y": pa.float64()}),
            "d": pa.decimal128(10, 2),
        }
    )
    assert all(field.nullable for field in schema)


def test_quoted_names_comments_and_constraints_are_read() -> None:
    assert parse("`a ``b` int NOT NULL COMMENT 'x, y'").names == ["a `b"]
    assert parse("a: int, B :long").names == ["a", "B"]
    assert parse("a varchar(3), b char(2)") == parse("a string, b string")


@pytest.mark.parametrize(
    "text",
    ["", "word", "word strin", "a int,", "a int b int", "a array<int", "a decimal(40,2)", "a decimal(3,4)",
     "a map<int>", "a int ; b int", "a decimal(x)", "a int, A string", "a interval year to month",
     "a array<>"],
)  # fmt: skip
def test_what_is_no_schema_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(text)
    assert caught.value.why
    assert caught.value.fix


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.timestamp("ns", tz="Europe/Berlin"), UTC),
        (pa.timestamp("s"), pa.timestamp("us")),
        (pa.uint32(), pa.int64()),
        (pa.float16(), pa.float32()),
        (pa.large_list(pa.large_binary()), pa.list_(pa.field("element", pa.binary()))),
        (pa.map_(pa.large_string(), pa.uint8()), pa.map_(pa.string(), pa.int16())),
        (pa.struct({"x": pa.date64()}), pa.struct({"x": pa.date32()})),
        (pa.decimal256(20, 2), pa.decimal128(20, 2)),
    ],
)
def test_arrow_types_become_the_ones_spark_has(given: pa.DataType, expected: pa.DataType) -> None:
    assert parse(pa.schema({"x": given})) == pa.schema({"x": expected})
    assert parse({"x": given}) == pa.schema({"x": expected})


@pytest.mark.parametrize("kind", [pa.uint64(), pa.month_day_nano_interval(), pa.decimal256(50, 2)])
def test_arrow_types_spark_lacks_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(InvalidInput, match="cannot be carried"):
        parse(pa.schema({"x": kind}))


class FakeStruct:
    def __init__(self, value: Any) -> None:
        self.value = value

    def jsonValue(self) -> Any:  # noqa: N802 - Spark's name
        return self.value


def test_anything_with_spark_s_json_is_a_schema() -> None:
    element = {"type": "array", "elementType": "decimal(3,1)", "containsNull": False}
    fields = [{"name": "a", "type": element, "nullable": False, "metadata": {}}]
    assert parse(FakeStruct({"type": "struct", "fields": fields})) == parse("a array<decimal(3,1)>")
    assert parse({"a": FakeStruct(element), "b": "long"}) == parse("a array<decimal(3,1)>, b long")


def test_an_object_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidInput, match="int is not a schema"):
        parse(3)
    with pytest.raises(InvalidInput, match="3 is not a type"):
        parse({"a": 3})


def test_conform_selects_orders_casts_and_drops_metadata() -> None:
    table = pa.table({"b": pa.array([1, None], pa.int8()), "extra": [0, 0], "a": ["x", "y"]})
    answer = conform(table.replace_schema_metadata({"k": "v"}), parse("a string, b long"))
    assert answer == pa.table({"a": ["x", "y"], "b": pa.array([1, None], pa.int64())})
    assert answer.schema.metadata is None


def test_conform_cuts_times_to_microseconds_and_names_the_zone() -> None:
    table = pa.table({"at": pa.array([1_500], pa.timestamp("ns"))})
    assert conform(table, parse("at timestamp"))["at"].to_pylist()[0].isoformat() == "1970-01-01T00:00:00.000001+00:00"


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (pa.table({"a": ["x"]}), "column 'b' is missing"),
        (pa.table({"b": [1.5]}), "column 'b' cannot become int64"),
        (pa.table({"b": ["one"]}), "column 'b' cannot become int64"),
        (pa.table([pa.array([1]), pa.array([2])], names=["b", "b"]), "column 'b' is there 2 times"),
    ],
)
def test_what_cannot_conform_is_named(table: pa.Table, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        conform(table, parse("b long"))


def test_conform_keeps_an_empty_table_empty() -> None:
    assert conform(pa.table({"b": pa.array([], pa.int32())}), parse("b long")).num_rows == 0


@pytest.mark.spark
@pytest.mark.usefixtures("spark")  # fromDDL asks the JVM
def test_types_are_spark_s_own() -> None:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    struct = StructType.fromDDL(ALL_TYPES)
    assert isinstance(struct, StructType)
    theirs = to_arrow_schema(struct, timezone="UTC")
    for ours in (parse(ALL_TYPES), parse(struct)):
        assert ours.names == theirs.names
        for field in theirs:
            # Nullability apart: theirs follows NOT NULL, ours never relies on it.
            assert str(ours.field(field.name).type) == str(field.type).replace(" not null", ""), field.name
