"""Records become rows, bad ones are found one by one, and offsets are shared out: all without a broker."""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import Any

import fastavro
import httpx
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import InvalidInput, Unavailable
from understudy.model.schema import parse
from understudy.sources import Kafka, records
from understudy.sources.offsets import Span, limited
from understudy.sources.records import Record, decode, parser


def made(*values: bytes | None, **more: Any) -> list[Record]:
    return [Record("orders", 2, 10 + number, value, **more) for number, value in enumerate(values)]


def decoded(form: Any, schema: str, *values: bytes | None, writer: Any = None) -> tuple[list[Any], list[int]]:
    parsed = parse(schema)
    rows, bad = decode(made(*values), parsed, parser(form, parsed, writer))
    assert rows.schema == parsed
    return [tuple(row.values()) for row in rows.to_pylist()], [one.record.offset for one in bad]


def test_json_records_and_the_bad_among_them() -> None:
    values = [
        b'{"n":1,"more":[1]}',
        b"",
        b'{"n":"x"}',
        b'{"n":\n 2}',
        b"[3]",
        b'{"n":4} {"n":5}',
        b'{"n":6',
        b"{}",
        None,
    ]
    rows, bad = decoded("json", "n long", *values)
    assert rows == [(1,), (2,), (None,), (None,)]
    assert bad == [11, 12, 14, 15, 16]


def test_a_record_is_not_continued_by_the_next() -> None:
    rows, bad = decoded("json", "n long", b'{"n":1}{"n":', b"2}", b'{"n":3}')
    assert (rows, bad) == ([(3,)], [10, 11])


@given(
    st.lists(st.sampled_from([b'{"n":1}', b"no", b'{"n":1.5}', b"", None, b'{"n":1}{"n":2}', b'{"n":[']), max_size=40)
)
def test_each_record_is_judged_as_if_it_were_alone(values: list[bytes | None]) -> None:
    alone = [decoded("json", "n long", value) for value in values]
    rows, bad = decoded("json", "n long", *values)
    assert rows == [row for found, _ in alone for row in found]
    assert bad == [10 + number for number, (_, wrong) in enumerate(alone) if wrong]


def test_csv_lines() -> None:
    rows, bad = decoded("csv", "n long, word string", b"1,a", b"2", b'3,"b,c"\r\n', b"x,d", b"4,e\n5,f", b'6,"g')
    assert rows == [(1, "a"), (3, "b,c")]
    assert bad == [11, 13, 14, 15]


def test_raw_values_and_what_kafka_says() -> None:
    schema = parse(
        "value string, kafka_key binary, kafka_partition int, kafka_offset long, kafka_timestamp timestamp, "
        "kafka_topic string, kafka_headers map<string,string>"
    )
    given = made(b"a", b"\xff", None, key=b"k", time_ms=1500, headers=(("h", b"1"), ("h", b"2"), ("e", None)))
    rows, bad = decode(given, schema, parser("raw", schema))
    at = dt.datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=dt.UTC)
    said = {"kafka_key": b"k", "kafka_partition": 2, "kafka_timestamp": at, "kafka_topic": "orders"}
    said |= {"kafka_headers": [("h", "2"), ("e", None)]}
    assert rows.to_pylist() == [
        {"value": "a", "kafka_offset": 10} | said,
        {"value": None, "kafka_offset": 12} | said,
    ]
    assert [one.record.offset for one in bad] == [11]


AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "word", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
AT = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)


def packed(n: int, word: str | None) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(AVRO), {"n": n, "word": word, "at": AT})
    return stream.getvalue()


def test_avro_with_a_schema() -> None:
    values = [packed(1, "a"), b"\x02", packed(2, None), packed(3, "b") + b"!"]
    rows, bad = decoded("avro", "n long, word string, at timestamp", *values, writer=json.dumps(AVRO))
    assert (rows, bad) == ([(1, "a", AT), (2, None, AT)], [11, 13])
    with pytest.raises(InvalidInput, match="cannot be read"):
        parser("avro", parse("n long"), {"type": "nothing"})


def test_avro_with_a_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def get(url: httpx.URL, timeout: float) -> httpx.Response:
        asked.append(str(url))
        if url.path.endswith("/7"):
            return httpx.Response(200, json={"schema": json.dumps(AVRO)})
        return httpx.Response(404, json={})

    monkeypatch.setattr(httpx, "get", get)
    values = [b"\0\0\0\0\x07" + packed(1, "a"), b"\0\0\0\0\x08" + packed(2, "b"), packed(3, "c")]
    rows, bad = decoded("avro", "n long, word string, at timestamp", *values, writer="http://registry/")
    assert (rows, bad) == ([(1, "a", AT)], [11, 12])
    assert asked.count("http://registry/schemas/ids/7") == 1, "a schema is asked for once"


def test_a_registry_that_is_away_is_no_bad_record() -> None:
    with pytest.raises(Unavailable) as caught:
        decoded("avro", "n long", b"\0\0\0\0\x07" + packed(1, "a"), writer="http://me:hunter2@127.0.0.1:9")
    assert "127.0.0.1:9/schemas/ids/7" in caught.value.what
    assert "hunter2" not in str(caught.value)


offsets = st.dictionaries(st.integers(0, 20), st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1)


@given(offsets, st.integers(1, 10**6))
def test_a_limit_is_kept_and_used_up(given: dict[int, tuple[int, int]], most: int) -> None:
    span = Span({p: begin for p, (begin, _) in given.items()}, {p: begin + more for p, (begin, more) in given.items()})
    cut = limited(span, most)
    assert all(span.begin[p] <= cut.end[p] <= span.end[p] for p in given)
    assert sum(cut.end[p] - cut.begin[p] for p in given) == min(most, sum(more for _, more in given.values()))
    assert limited(span, None) == span
    assert Span.from_json(json.loads(json.dumps(cut.to_json()))) == cut


@given(offsets, st.integers(1, 5))
def test_slices_read_every_partition_once(given: dict[int, tuple[int, int]], slices: int) -> None:
    span = Span(dict.fromkeys(given, 0), {p: end for p, (end, _) in given.items()})
    shares = [span.share(index, slices) for index in range(slices)]
    assert sorted(p for share in shares for p in share) == sorted(given)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"schema": None}, "need a schema"),
        ({"format": "xml"}, "no such choice"),
        ({"max_rows": 0}, "max_rows=0"),
        ({"bad": "ignore"}, "bad='ignore'"),
        ({"bad": "to:"}, "bad='to:'"),
        ({"start": "yesterday"}, "start='yesterday'"),
        ({"format": "avro"}, "no avro schema"),
        ({"avro": "http://r"}, "an avro schema"),
        ({"schema": "kafka_offset string"}, "kafka_offset"),
        ({"schema": "a string, b string", "format": "raw"}, "raw records cannot fill"),
        ({"event_time": "at"}, "no column 'at'"),
        ({"servers": ""}, "servers=''"),
        ({"options": {"isolation.level": "read_uncommitted"}}, "isolation.level"),
    ],
)
def test_mistakes_are_found_at_once(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Kafka(**{"servers": "b:9092", "topic": "t", "schema": "n long"} | options)
    assert complaint in str(caught.value)


def test_a_start_is_kept_in_one_spelling() -> None:
    same: list[Any] = [dt.datetime(2024, 5, 1), "2024-05-01", "2024-05-01T02:00:00+02:00", "2024-05-01T00:00:00Z"]  # noqa: DTZ001
    assert {Kafka("b", "t", "n long", start=one).start for one in same} == {"2024-05-01T00:00:00+00:00"}


def test_columns_of_kafka_have_types_spark_knows() -> None:
    for name, kinds in records.META.items():
        for kind in kinds:
            assert parse(pa.schema([(name, kind)])).field(0).type == kind
