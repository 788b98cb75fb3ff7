"""PySpark data sources run here without a JVM."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    InputPartition,
    SimpleDataSourceStreamReader,
)
from pyspark.sql.types import LongType, StringType, StructField, StructType

from understudy.errors import InvalidInput
from understudy.sources import Reader


class Range(InputPartition):
    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end


class Counting(DataSourceStreamReader):
    """Offers three rows more at every look, in two partitions."""

    def __init__(self, schema: StructType, options: Any) -> None:
        assert isinstance(schema, StructType)
        self.step = int(options.get("rowsPerLook", "3"))

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"at": 10}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802
        assert type(limit).__name__ == "ReadAllAvailable"
        return {"at": start["at"] + self.step}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        middle = (start["at"] + end["at"]) // 2
        return [Range(start["at"], middle), Range(middle, end["at"])]

    def read(self, partition: Any) -> Iterator[Any]:
        for n in range(partition.start, partition.end):
            yield (n, f"row {n}") if n % 2 else Row(text=f"row {n}", n=n)


class OldCounting(Counting):
    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802
        return {"at": 12}


class Batches(Counting):
    def read(self, partition: Any) -> Iterator[Any]:
        numbers = list(range(partition.start, partition.end))
        yield pa.record_batch({"n": pa.array(numbers, pa.int32()), "text": [f"row {n}" for n in numbers]})


def source_of(reader: type, schema: Any = "n long, text string") -> type:
    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "counting"

        def schema(self) -> Any:
            return schema

        def streamReader(self, schema: StructType) -> Any:  # noqa: N802
            return reader(schema, self.options)

    return Source


STRUCT = StructType([StructField("n", LongType()), StructField("text", StringType())])


@pytest.mark.parametrize("reader", [Counting, OldCounting, Batches])
@pytest.mark.parametrize("schema", ["n long, text string", STRUCT])
def test_epochs_follow_the_offsets(reader: type, schema: Any) -> None:
    source = Reader(source_of(reader, schema), {"rowsPerLook": 2})
    assert source.recorded
    opened = source.open(0, 1, 1.0)
    first = opened.cut(0, None)
    assert first == {"from": {"at": 10}, "to": {"at": 12}}
    rows = opened.read(0, None, first)
    assert rows == pa.table({"n": [10, 11], "text": ["row 10", "row 11"]})
    again = source.open(0, 1, 1.0).read(0, None, first)
    assert again == rows
    second = opened.cut(1, first)
    expected = [] if reader is OldCounting else [12, 13]
    assert opened.read(1, first, second)["n"].to_pylist() == expected
    opened.close()


@pytest.mark.parametrize("slices", [1, 2, 3])
def test_slices_share_the_partitions_of_one_cut(slices: int) -> None:
    source = Reader(source_of(Counting), {"ROWSPERLOOK": 9})
    cut = source.open(0, slices, 1.0).cut(0, None)
    rows = [source.open(i, slices, 1.0).read(0, None, cut)["n"].to_pylist() for i in range(slices)]
    assert sorted(sum(rows, [])) == list(range(10, 19))  # noqa: RUF017


class Simple(SimpleDataSourceStreamReader):
    stuck = False

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"at": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[Any], dict[str, int]]:
        end = start["at"] if self.stuck else start["at"] + 2
        return iter([(0, "x")]), {"at": end}

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[Any]:  # noqa: N802
        return ((n, str(n)) for n in range(start["at"], end["at"]))


class SimpleSource(DataSource):
    def schema(self) -> str:
        return "n long, text string"

    def simpleStreamReader(self, schema: StructType) -> Simple:  # noqa: N802
        return Simple()


def test_simple_readers_are_read_by_the_first_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Reader(SimpleSource)
    cut = source.open(1, 2, 1.0).cut(0, None)
    assert source.open(0, 2, 1.0).read(0, None, cut)["n"].to_pylist() == [0, 1]
    assert source.open(1, 2, 1.0).read(0, None, cut).num_rows == 0
    monkeypatch.setattr(Simple, "stuck", True)
    with pytest.raises(InvalidInput, match="without moving on"):
        source.open(0, 1, 1.0).cut(0, None)


class Unreadable(DataSource):
    def schema(self) -> str:
        return "n long"


def test_what_is_no_stream_is_refused() -> None:
    with pytest.raises(InvalidInput, match="data source 'Unreadable' cannot be read as a stream"):
        Reader(Unreadable).open(0, 1, 1.0)
    with pytest.raises(InvalidInput, match="is no data source"):
        Reader("kafka")


@pytest.mark.parametrize(
    ("row", "expected"),
    [((1,), "a row of 1 values"), ((1, 2), "column 'text'"), (("x", "y"), "column 'n'"), ("ab", "returned str")],
)
def test_rows_that_do_not_fit_are_named(row: Any, expected: str) -> None:
    class Bad(Counting):
        def read(self, partition: Any) -> Iterator[Any]:
            yield row

    reader = Reader(source_of(Bad)).open(0, 1, 1.0)
    with pytest.raises(InvalidInput) as caught:
        reader.read(0, None, reader.cut(0, None))
    assert "data source 'counting'" in caught.value.what
    assert expected in caught.value.what


def test_nested_values_come_in_spark_s_spelling() -> None:
    at = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)

    class Nested(Counting):
        def read(self, partition: Any) -> Iterator[Any]:
            yield {"k": 1}, (1.0, [Row(z=1)]), at
            yield None, None, None

    schema = "m map<string,int>, s struct<x:double,l:array<struct<z:int>>>, t timestamp"
    reader = Reader(source_of(Nested, schema), {"rowsPerLook": 1}).open(0, 2, 1.0)
    rows = reader.read(0, None, reader.cut(0, None)).to_pylist()
    assert rows[0] == {"m": [("k", 1)], "s": {"x": 1.0, "l": [{"z": 1}]}, "t": at}
    assert rows[1] == {"m": None, "s": None, "t": None}
