"""Epochs as transactions of Kafka: an epoch's rows and its number are committed together."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.types as pt

from understudy.clients.kafka import PATIENCE_S, Cluster, check_servers
from understudy.errors import InvalidInput, UnderstudyError
from understudy.extras import need
from understudy.model.connection import CONNECTION
from understudy.sinks.interface import Sink, SinkWriter, Written
from understudy.sinks.jsonlines import lines, plain
from understudy.sinks.note import Superseded
from understudy.sinks.sequence import NOTHING, foreign, is_there

Format = Literal["json", "raw"]
logger = logging.getLogger(__name__)

TOKENS = "-understudy"
"""Ending of the compacted topic beside the target that holds the last epoch of every sink that wrote to it."""
TRANSACTION_MS = 60_000
_TAIL = 64
_COMMIT_S = 10.0


@dataclass(frozen=True)
class Kafka(Sink):
    """Writes every epoch to a topic, in one transaction with the epoch's number.

    A reader with `isolation.level=read_committed` sees every row once, and the rows of a key in the order of their
    epochs. The number goes to a compacted topic of its own, `<topic>-understudy`. A successor's `init_transactions`
    aborts what its predecessor left open and fences it; then it reads the number and skips what is there.

    Parameters
    ----------
    servers
        Addresses of brokers, `host:port`, separated by commas.
    topic
        The topic; it must exist, because its number of partitions is a decision of yours.
    key
        The column or columns whose value becomes the record's key, by which Kafka chooses the partition. One column
        of text or bytes is taken as it is, anything else as JSON.
    format
        `json`: the row as an object, in the words of `JsonLines`. `raw`: the one column that is not the key, text or
        bytes, as it is; null is a tombstone.
    options
        Further settings of librdkafka, such as `{"security.protocol": "SASL_SSL", "sasl.password": …}`. They appear
        in no log, report or fingerprint.

    Raises
    ------
    InvalidInput
        If the parameters do not fit together; when it is opened, if there is no such topic or it belongs to another
        run.
    Unavailable
        If confluent-kafka is not installed; when it is opened, if no broker answers.

    Examples
    --------
    >>> Kafka("broker:9092", "counts", key="word")
    Kafka(topic='counts', key=('word',), format='json')
    """

    servers: str = field(repr=False, metadata=CONNECTION)
    topic: str
    key: str | Sequence[str] = ()
    format: Format = "json"
    options: Mapping[str, Any] = field(default_factory=dict, repr=False, metadata=CONNECTION)

    def __post_init__(self) -> None:
        need(["confluent_kafka"], extra="kafka", user="us.sinks.Kafka")
        object.__setattr__(self, "key", (self.key,) if isinstance(self.key, str) else tuple(self.key))
        check_servers(self.servers, self.options, "us.sinks.Kafka")
        if self.format not in get_args(Format):
            raise InvalidInput(
                f"us.sinks.Kafka has format={self.format!r}",
                why="there is no such choice",
                fix=f"use one of {', '.join(get_args(Format))}",
            )

    def open(self, name: str, home: Path, run: str) -> SinkWriter:  # noqa: ARG002 - the interface's
        return KafkaWriter(self, name, run)


class Interrupted(UnderstudyError):
    """The producer cannot go on. Nothing says that a successor exists, so the slice is deployed again."""


class KafkaWriter(SinkWriter):
    """A transactional producer. The order of opening is the proof:

    1. `init_transactions` with the id of this run and sink: a predecessor's open transaction is aborted, or its commit
       completed, and whatever it sends from now on is refused.
    2. Read the newest token of this run and sink: the last epoch that was committed, by whomever.
    3. No token, and no token of anybody else: write the first one, to claim the topic.
    """

    def __init__(self, sink: Kafka, name: str, run: str, on_step: Callable[[str], None] = lambda _: None) -> None:
        from confluent_kafka import Producer

        self._sink, self._name, self._run = sink, name, run
        self._on_step = on_step
        self._ended: UnderstudyError | None = None
        self._owner = json.dumps({"run": run, "sink": name}, sort_keys=True)
        self._tokens = f"{sink.topic}{TOKENS}"
        self._cluster = Cluster(sink.servers, sink.options, f"sink '{name}'")
        try:
            self._cluster.require(sink.topic)
            if self._cluster.partitions(self._tokens) is None:
                self._cluster.create(self._tokens, {"cleanup.policy": "compact"})
            own = {
                "transactional.id": f"understudy-{run}-{name}",
                "transaction.timeout.ms": TRANSACTION_MS,
                "partitioner": "murmur2_random",
                "compression.type": "lz4",
            }
            self._producer: Any = Producer(self._cluster.settings(own))
            self._cluster.patiently(lambda: self._producer.init_transactions(_COMMIT_S))
            self._last = self._claimed()
        finally:
            # Only for looking: nothing is read once it is known where to go on.
            self._cluster.close()

    def write(self, epoch: int, rows: pa.Table) -> Written:
        if is_there(f"topic '{self._sink.topic}'", epoch, self._last):
            return Written.THERE
        if self._ended is not None:
            raise self._ended
        self._commit(epoch, list(zip(keys(rows, self._sink.key), values(rows, self._sink), strict=True)))
        self._last = epoch
        return Written.ONCE

    def close(self) -> None:
        # An open transaction is aborted by the successor, or by its timeout.
        self._producer = None

    def _claimed(self) -> int:
        """The last epoch of this run and sink; claims the topic where nobody has written."""
        found = self._newest()
        if found is None:
            self._commit(NOTHING, [])
            found = self._newest(others=True)
        return NOTHING if found is None else found

    def _newest(self, *, others: bool = False) -> int | None:
        """The epoch of our newest token, searched from the end; refuses a topic where only others have tokens."""
        low = self._cluster.beginnings(self._tokens, [0])[0]
        high = self._cluster.ends(self._tokens, [0], committed=False)[0]
        begin, width = high, _TAIL
        while True:
            begin = low if others else max(low, high - width)
            tokens = _by_owner(self._cluster.read(self._tokens, {0: (begin, high)}))
            found = tokens.pop(self._owner, None)
            if tokens and (found is None or others):
                their = json.loads(next(iter(tokens)))
                release = f"delete the topic '{self._tokens}'"
                raise foreign(f"topic '{self._sink.topic}'", their["run"], their["sink"], release)
            if found is not None or begin == low:
                return found
            width *= 4

    def _commit(self, epoch: int, records: Sequence[tuple[bytes | None, bytes | None]]) -> None:
        """One transaction, tried again while brokers are away. A fenced producer never gets further."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._send(epoch, records)
                self._end("commit_transaction", deadline)
                self._on_step("committed")
                return
            except KafkaException as error:
                reason = error.args[0]
                if not reason.txn_requires_abort():
                    # Librdkafka refuses every further call, for reasons that say less than this one.
                    self._ended = self._stopped(reason, epoch)
                    raise self._ended from error
                logger.warning("sink '%s' begins epoch %d again: %s", self._name, epoch, reason.str())
                if time.monotonic() > deadline:
                    raise self._cluster.unreachable(reason.str()) from error
                self._abort(epoch, deadline)

    def _send(self, epoch: int, records: Sequence[tuple[bytes | None, bytes | None]]) -> None:
        self._producer.begin_transaction()
        self._on_step("begun")
        for key, value in records:
            self._produce(self._sink.topic, value, key)
        self._on_step("sent")
        token = json.dumps({"epoch": epoch, "rows": len(records)})
        self._produce(self._tokens, token.encode(), self._owner.encode())
        self._on_step("noted")

    def _produce(self, topic: str, value: bytes | None, key: bytes | None) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key)
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def _end(self, call: str, deadline: float) -> None:
        """Commits or aborts; an answer that does not come is asked for again."""
        from confluent_kafka import KafkaException

        while True:
            try:
                getattr(self._producer, call)(_COMMIT_S)
                return
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                if time.monotonic() > deadline:
                    raise self._cluster.unreachable(error.args[0].str()) from error

    def _abort(self, epoch: int, deadline: float) -> None:
        from confluent_kafka import KafkaException

        try:
            self._end("abort_transaction", deadline)
        except KafkaException as error:
            self._ended = self._stopped(error.args[0], epoch)
            raise self._ended from error

    def _stopped(self, reason: Any, epoch: int) -> UnderstudyError:
        from confluent_kafka import KafkaError

        fenced = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
        if reason.code() in fenced:
            return Superseded(self._name, epoch)
        if reason.code() in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.TOPIC_AUTHORIZATION_FAILED):
            return InvalidInput(
                f"Kafka refuses epoch {epoch} for topic '{self._sink.topic}'",
                why=reason.str(),
                fix="let the rows fit the topic's limits, and grant the user what it needs; then go on with --resume",
            )
        return Interrupted(
            f"sink '{self._name}' could not finish epoch {epoch}",
            why=reason.str(),
            fix="nothing, if it does not come again: the slice is deployed anew and finds out what was committed",
        )


def _by_owner(messages: Any) -> dict[str, int]:
    return {message.key().decode(): int(json.loads(message.value())["epoch"]) for message in messages}


def keys(rows: pa.Table, key: Sequence[str] | str) -> list[bytes | None]:
    """The key of every record.

    Examples
    --------
    >>> rows = pa.table({"word": ["a", None], "n": [1, 2]})
    >>> keys(rows, ["word"])
    [b'a', None]
    >>> keys(rows, ["n", "word"])
    [b'{"n":1,"word":"a"}', b'{"n":2,"word":null}']
    """
    if not key:
        return [None] * rows.num_rows
    _check_columns(rows, key)
    if len(key) > 1:
        return [line.encode() for line in lines(rows.select(list(key)))]
    column = rows.column(key[0])
    return [_bytes(value, column.type) for value in column.to_pylist()]


def _bytes(value: Any, kind: pa.DataType) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    return json.dumps(plain(value, kind), ensure_ascii=False, separators=(",", ":")).encode()


def values(rows: pa.Table, sink: Kafka) -> list[bytes | None]:
    """The value of every record."""
    if sink.format == "json":
        return [line.encode() for line in lines(rows)]
    others = [name for name in rows.column_names if name not in sink.key]
    kind = rows.schema.field(others[0]).type if len(others) == 1 else None
    if kind is None or not (pt.is_string(kind) or pt.is_binary(kind)):
        raise InvalidInput(
            f"rows for topic '{sink.topic}' cannot be written raw",
            why=f"raw takes one column of text or bytes beside the key, and there are {rows.schema.to_string()}",
            fix='let the operator return that column alone, or use format="json"',
        )
    return [_bytes(value, kind) for value in rows.column(others[0]).to_pylist()]


def _check_columns(rows: pa.Table, key: Sequence[str]) -> None:
    missing = next((name for name in key if name not in rows.column_names), None)
    if missing is not None:
        raise InvalidInput(
            f"the rows have no column '{missing}', which is the key",
            why=f"their columns are {', '.join(rows.column_names)}",
            fix="name columns of the rows as the key",
        )
