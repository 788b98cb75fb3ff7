"""A run's topics on real brokers: created, followed by one thread, appended to by everybody.

`acks=all` and an idempotent producer: what is read is on all brokers that are in sync, in the order in which it was
sent, once. Brokers that are away are waited for; librdkafka connects again by itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from understudy.clients.kafka import Cluster, OffsetsGone
from understudy.errors import InvalidInput, Unavailable
from understudy.log.kafka_follower import Follower
from understudy.log.kafka_settings import KafkaSettings
from understudy.log.kafka_wire import FACTS, Failed, Read, Take

logger = logging.getLogger(__name__)

CLOSE_S = 5.0
_FULL_S = 0.05
_OVERHEAD = 100_000
"""Bytes that a record may have beside its value."""
QUICK = {
    "socket.nagle.disable": True,
    "socket.timeout.ms": 10_000,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "topic.metadata.refresh.fast.interval.ms": 100,
}
"""A record is on its way at once, and a broker that is back is found within half a second."""
REFUSING = ("MSG_SIZE_TOO_LARGE", "TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "INVALID_RECORD")
"""Errors of a record that no retry mends."""


class KafkaWire:
    """A `Wire`. `_cluster` is used under `_asking`; the producer by any thread."""

    def __init__(self, settings: KafkaSettings, partitions: int) -> None:
        self._settings, self._partitions = settings, partitions
        self.record_bytes, self.patience_s = settings.record_bytes, settings.patience_s
        self._asking = threading.Lock()
        self._cluster = Cluster(settings.servers, settings.options, "the log", settings.patience_s)
        self._failure: Unavailable | None = None
        self._create()
        self._producing = threading.Lock()
        self._producer = self._make_producer()
        self._retired: list[Any] = []
        self._follower = Follower(self._cluster.settings, settings.bags, settings.facts, self._serve)

    def _create(self) -> None:
        settings, cluster = self._settings, self._cluster
        brokers = cluster.count_brokers()
        copies = settings.replicas or min(3, brokers)
        insync = settings.insync or max(1, copies - 1)
        if copies > brokers or insync > copies:
            raise InvalidInput(
                f"the log wants {copies} copies, {insync} of them in sync",
                why=f"{settings.servers} has {brokers} brokers, and copies in sync are among the copies",
                fix="correct 'replicas' and 'insync' in log.url",
            )
        shared = {"min.insync.replicas": str(insync), "max.message.bytes": str(self.record_bytes + _OVERHEAD)}
        # Only trimming removes anything: a slice that is away for long finds all it needs.
        forever = {"retention.ms": "-1", "retention.bytes": "-1", "segment.bytes": str(64 << 20)}
        latest = {"cleanup.policy": "compact", "segment.bytes": str(16 << 20), "min.cleanable.dirty.ratio": "0.1"}
        cluster.create(settings.bags, shared | forever, self._partitions, copies)
        cluster.create(settings.facts, shared | latest, 1, copies)
        found = len(cluster.await_leaders(settings.bags))
        cluster.await_leaders(settings.facts)
        if found != self._partitions:
            raise InvalidInput(
                f"the topic {settings.bags} has {found} partitions",
                why=f"this run has {self._partitions} slices that publish, and each has a partition of its own",
                fix="give another name in log.url; never change the partitions of a topic of ours",
            )

    def _make_producer(self) -> Any:
        from confluent_kafka import Producer

        return Producer(
            self._cluster.settings(
                QUICK
                | {
                    "acks": "all",
                    "enable.idempotence": True,
                    # A record is never given up: whoever waits for it decides how long that makes sense.
                    "message.timeout.ms": 0,
                    "linger.ms": 0,
                    "message.max.bytes": self.record_bytes + _OVERHEAD,
                    "queue.buffering.max.kbytes": 128 << 10,
                    "retry.backoff.ms": 50,
                    "retry.backoff.max.ms": 500,
                }
            )
        )

    # -- reading

    def follow(self, take: Take) -> None:
        self._follower.start(take, range(self._partitions), self._beginnings)
        self.sync([*range(self._partitions), FACTS])

    def _beginnings(self, partitions: Sequence[int]) -> tuple[dict[int, int], int]:
        """Where these partitions begin now, and after that where the facts end."""
        settings = self._settings
        with self._asking:
            low = self._cluster.beginnings(settings.bags, partitions)
            return low, self._cluster.ends(settings.facts, [0], committed=False)[0]

    def sync(self, partitions: Sequence[int]) -> None:
        settings, slices = self._settings, [number for number in partitions if number != FACTS]
        with self._asking:
            ends = self._cluster.ends(settings.bags, slices, committed=False)
            if FACTS in partitions:
                ends[FACTS] = self._cluster.ends(settings.facts, [0], committed=False)[0]
        if not self._follower.await_positions(ends, self.patience_s, self.check):
            raise self.away("the log could not be read to its end")

    def read(self, partition: int, first: int, last: int) -> Iterator[Read]:
        wanted = {partition: (first, last + 1)}
        found: list[Read] = []
        with self._asking, suppress(OffsetsGone):
            # What was trimmed meanwhile nobody needs.
            messages = self._cluster.read(self._settings.bags, wanted)
            found.extend(Read(partition, one.offset(), one.key(), one.value()) for one in messages)
        return iter(found)

    # -- writing

    def send(self, partition: int, key: bytes, value: bytes | None, failed: Failed | None = None) -> None:
        topic, number = (self._settings.facts, 0) if partition == FACTS else (self._settings.bags, partition)
        deadline, producer = time.monotonic() + self.patience_s, self._producer

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                self._note_failure(error, producer)
                if failed is not None:
                    failed()
                elif self._failure is None:
                    self.send(partition, key, value)

        while True:
            try:
                producer.produce(topic, value, key, number, on_delivery=delivered)
                return
            except BufferError:
                # Much is on its way, or brokers are away. Reports of what has arrived make room.
                producer.poll(_FULL_S)
                self.check()
                if time.monotonic() > deadline:
                    raise self.away("records could not be sent") from None

    def _note_failure(self, error: Any, producer: Any) -> None:
        """A record will not arrive: because nobody wants it, or because the producer has to begin anew."""
        from confluent_kafka import KafkaError

        if error.name() in REFUSING:
            self._failure = self._cluster.unreachable(f"a record was refused: {error.str()}")
            return
        logger.warning("a record of the log will be sent again: %s", error.str())
        with self._producing:
            if producer is self._producer and (error.fatal() or error.code() == KafkaError._FATAL):
                self._retired.append(producer)
                self._producer = self._make_producer()

    def _serve(self) -> None:
        """Called by the thread that reads, several times a second: hands out what became of records."""
        for producer in [self._producer, *self._retired]:
            producer.poll(0)

    def forget(self, partition: int, before: int) -> None:
        with self._asking:
            self._cluster.delete_before(self._settings.bags, partition, before)

    # -- errors

    def check(self) -> None:
        failure = self._failure or self._follower.failure
        if failure is not None:
            raise failure

    def away(self, what: str) -> Unavailable:
        return self._cluster.unreachable(f"{what} within {self.patience_s:.0f} s; {self._cluster.complaint}")

    def close(self) -> None:
        self._producer.flush(CLOSE_S)
        self._follower.close()
        with self._asking:
            self._cluster.close()
