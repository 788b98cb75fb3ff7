"""A topic of Kafka as a stream: an epoch is a range of offsets per partition, recorded once."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from understudy.clients.kafka import PATIENCE_S, Cluster, check_servers, gone
from understudy.errors import InvalidInput
from understudy.extras import need
from understudy.model.connection import CONNECTION
from understudy.model.schema import SchemaLike, parse
from understudy.sources import records
from understudy.sources.interface import Position, Source, SourceReader
from understudy.sources.offsets import Span, limited
from understudy.sources.pace import check_time_column
from understudy.sources.records import Bad, Format, Record

logger = logging.getLogger(__name__)

DEAD_LETTERS = "to:"
"""What stands in front of a topic's name in `bad`."""


@dataclass(frozen=True)
class Kafka(Source):
    """Reads a topic; slices share out its partitions, by their numbers.

    An epoch is a range of offsets per partition, up to what is committed when the epoch is cut. The range is recorded
    once, so the epoch is the same whoever reads it, and however often. Partitions that are added during a run are read
    from their beginning.

    Parameters
    ----------
    servers
        Addresses of brokers, `host:port`, separated by commas.
    topic
        The topic.
    schema
        The columns of the rows. These names stand for what Kafka says of a record: `kafka_key` (string or binary),
        `kafka_headers` (a map from string to string or binary), `kafka_topic`, `kafka_partition` (int), `kafka_offset`
        (long), `kafka_timestamp` (timestamp). All others come from the record's value.
    format
        `json`: one object a record. `csv`: one line a record, columns in the schema's order. `raw`: the value itself,
        in the one column that is left. `avro`: see there.
    start
        Where the first epoch begins: `earliest`, `latest`, or a time (ISO 8601 text or a datetime; UTC without a
        zone): the first records with this timestamp or a later one.
    event_time
        A column by which the rows of an epoch are sorted. Without it they come partition by partition.
    max_rows
        The most offsets that an epoch of all slices together holds, shared out by what each partition has waiting.
    bad
        What becomes of records that cannot be read: `fail` ends the run and names topic, partition and offset; `drop`
        leaves them out, counted in the log; `to:TOPIC` writes them to another topic, at least once, with the reason in
        the headers.
    avro
        For the format avro: the schema that all records were written with (JSON text or a dict), or the address of a
        schema registry.
    options
        Further settings of librdkafka, such as `{"security.protocol": "SASL_SSL", "sasl.password": …}`. They appear
        in no log, report or fingerprint.

    Raises
    ------
    InvalidInput
        If the parameters do not fit together; when it is opened, if there is no such topic.
    Unavailable
        If confluent-kafka is not installed; when it is opened, if no broker answers; when offsets that the run has
        not read yet are gone (`OffsetsGone`, which names them).

    Examples
    --------
    >>> source = Kafka("broker:9092", "orders", "id long, cents long, kafka_offset long", max_rows=10_000)
    >>> source.schema.names
    ['id', 'cents', 'kafka_offset']
    """

    servers: str = field(repr=False, metadata=CONNECTION)
    topic: str
    schema: SchemaLike = None
    format: Format = "json"
    start: str | dt.datetime = "earliest"
    event_time: str | None = None
    max_rows: int | None = None
    bad: str = "fail"
    avro: Mapping[str, Any] | str | None = field(default=None, repr=False, metadata=CONNECTION)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False, metadata=CONNECTION)

    recorded = True

    def __post_init__(self) -> None:
        need(["confluent_kafka"], extra="kafka", user="us.sources.Kafka")
        check_servers(self.servers, self.options, "us.sources.Kafka")
        _check_choices(self)
        object.__setattr__(self, "start", _start(self.start))
        object.__setattr__(self, "schema", _schema(self.schema, self.format))
        records.check(self.schema, self.format)
        if self.event_time is not None:
            check_time_column(self.schema, self.event_time)

    @property
    def dead_letters(self) -> str | None:
        """The topic that gets records which cannot be read; None with any other policy."""
        return self.bad.removeprefix(DEAD_LETTERS) if self.bad.startswith(DEAD_LETTERS) else None

    def open(self, slice_index: int, slices: int, epoch_s: float) -> SourceReader:  # noqa: ARG002 - the interface's
        return KafkaReader(self, slice_index, slices)


def _check_choices(source: Kafka) -> None:
    if source.format not in get_args(Format):
        raise InvalidInput(
            f"us.sources.Kafka has format={source.format!r}",
            why="there is no such choice",
            fix=f"use one of {', '.join(get_args(Format))}",
        )
    if source.max_rows is not None and source.max_rows < 1:
        raise InvalidInput(f"max_rows={source.max_rows} cannot be used", why="it is below 1", fix="pass max_rows=10000")
    if source.bad not in ("fail", "drop") and not source.dead_letters:
        raise InvalidInput(
            f"us.sources.Kafka has bad='{source.bad}'",
            why="bad records end the run, are dropped, or go to another topic",
            fix='use "fail", "drop" or "to:TOPIC"',
        )
    if (source.format == "avro") != (source.avro is not None):
        raise InvalidInput(
            f"us.sources.Kafka has format='{source.format}' and {'no' if source.avro is None else 'an'} avro schema",
            why="Avro records can only be read with the schema they were written with, and others have none",
            fix='pass format="avro" and avro=SCHEMA, or avro="http://registry:8081"',
        )
    if source.format == "avro":
        need(["fastavro"], extra="avro", user='us.sources.Kafka(format="avro")')


def _start(start: object) -> str:
    """`earliest`, `latest`, or a time as ISO 8601 in UTC."""
    if start in ("earliest", "latest"):
        return str(start)
    try:
        time = start if isinstance(start, dt.datetime) else dt.datetime.fromisoformat(str(start))
    except ValueError as error:
        raise InvalidInput(
            f"us.sources.Kafka has start={start!r}",
            why="it is neither earliest nor latest nor a time",
            fix='write start="2024-05-01T00:00:00Z"',
        ) from error
    return (time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time.astimezone(dt.UTC)).isoformat()


def _schema(schema: SchemaLike, form: Format) -> pa.Schema:
    if schema is None and form != "raw":
        raise InvalidInput(
            f"{form} records need a schema",
            why="types are not guessed: a guess may change with the first records",
            fix='pass schema="id long, at timestamp"',
        )
    return parse("value binary" if schema is None else schema)


class KafkaReader(SourceReader):
    def __init__(self, source: Kafka, slice_index: int, slices: int) -> None:
        self._source, self._slice, self._slices = source, slice_index, slices
        self._parse = records.parser(source.format, source.schema, source.avro)
        self._cluster = Cluster(source.servers, source.options, f"topic '{source.topic}'")
        self._producer: Any = None
        self.dropped = 0
        try:
            self._cluster.require(source.topic)
            if source.dead_letters:
                self._cluster.require(source.dead_letters)
        except BaseException:
            self.close()
            raise

    def cut(self, epoch: int, start: Position) -> Position:  # noqa: ARG002 - the interface's
        topic, partitions = self._source.topic, self._cluster.require(self._source.topic)
        if start is None:
            begin = self._first(partitions)
        else:
            begin = dict(Span.from_json(start).end)
            # Partitions that were added since then: all their records are new.
            begin |= self._cluster.beginnings(topic, [one for one in partitions if one not in begin])
        span = Span(begin, self._cluster.ends(topic, partitions, committed=True))
        lost = span.lost()
        if lost:
            raise gone(topic, {p: (at, at + 1) for p, (at, _) in lost.items()}, {})
        return limited(span, self._source.max_rows).to_json()

    def _first(self, partitions: Sequence[int]) -> dict[int, int]:
        topic, start = self._source.topic, self._source.start
        if start == "earliest":
            return self._cluster.beginnings(topic, partitions)
        ends = self._cluster.ends(topic, partitions, committed=True)
        if start == "latest":
            return ends
        moment = round(dt.datetime.fromisoformat(str(start)).timestamp() * 1000)
        found = self._cluster.at_time(topic, partitions, moment)
        # A record of an open transaction may be found, and lies behind what is committed.
        return {p: min(at, ends[p]) if at >= 0 else ends[p] for p, at in found.items()}

    def read(self, epoch: int, start: Position, end: Position) -> pa.Table:  # noqa: ARG002 - the interface's
        span = Span.from_json(end).share(self._slice, self._slices)
        found: dict[int, list[Record]] = {partition: [] for partition in span}
        for message in self._cluster.read(self._source.topic, span):
            found[message.partition()].append(_record(message))
        ordered = [record for partition in sorted(found) for record in found[partition]]
        rows, bad = records.decode(ordered, self._source.schema, self._parse)
        if bad:
            self._settle(bad)
        if self._source.event_time is not None:
            rows = rows.take(pc.sort_indices(rows, [(self._source.event_time, "ascending")]))
        return rows

    def _settle(self, bad: Sequence[Bad]) -> None:
        """Does with bad records what the source says."""
        first = bad[0]
        if self._source.bad == "fail":
            raise InvalidInput(
                f"{first.record} cannot be read as {self._source.format}",
                why=first.why,
                fix='correct the schema; or let bad="drop" or bad="to:TOPIC" say what becomes of bad records',
            )
        if self._source.dead_letters is not None:
            self._bury(bad, self._source.dead_letters)
        self.dropped += len(bad)
        logger.warning("%d bad records so far, the last: %s: %s", self.dropped, bad[-1].record, bad[-1].why)

    def _bury(self, bad: Sequence[Bad], topic: str) -> None:
        from confluent_kafka import Producer

        if self._producer is None:
            self._producer = Producer(self._cluster.settings({"enable.idempotence": True}))
        failures: list[str] = []
        for record, why in bad:
            self._producer.produce(
                topic,
                record.value,
                record.key,
                headers=[*record.headers, *_origin(record, why)],
                on_delivery=lambda error, _: failures.append(error.str()) if error else None,
            )
            self._producer.poll(0)
        if self._producer.flush(PATIENCE_S) or failures:
            why = failures[0] if failures else "no broker took the record"
            raise self._cluster.unreachable(f"bad records could not be written to '{topic}': {why}")

    def close(self) -> None:
        self._cluster.close()


def _record(message: Any) -> Record:
    kind, time_ms = message.timestamp()
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        message.value(),
        message.key(),
        time_ms if kind else None,
        tuple(message.headers() or ()),
    )


def _origin(record: Record, why: str) -> list[tuple[str, bytes]]:
    """Where a bad record came from: together they identify it, if it is written twice."""
    said = {"topic": record.topic, "partition": record.partition, "offset": record.offset, "reason": why}
    return [(f"understudy-{name}", str(value).encode()) for name, value in said.items()]
