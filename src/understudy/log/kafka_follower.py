"""The thread that reads all partitions of a run, in their order, from where they begin."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from understudy.errors import Unavailable, UnderstudyError
from understudy.log.kafka_wire import FACTS, Read, Take

logger = logging.getLogger(__name__)

WAIT_S = 0.1
BATCH = 500
Beginnings = Callable[[Sequence[int]], tuple[dict[int, int], int]]
"""Where partitions begin now, and where the facts ended after that."""


class Follower:
    """Hands every record to `take`.

    A partition whose beginning was trimmed is begun where it begins now, once the facts are read that were there then:
    fences among the trimmed records are facts by that time. All partitions are begun in this way. `_positions` is
    shared and behind `_moved`; the rest belongs to the thread.
    """

    def __init__(
        self, settings: Callable[[Mapping[str, Any]], dict[str, Any]], bags: str, facts: str, serve: Callable[[], None]
    ) -> None:
        from confluent_kafka import Consumer

        self._bags, self._facts, self._serve = bags, facts, serve
        self._consumer: Any = Consumer(
            settings(
                {
                    "group.id": "understudy-log",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "error",
                    "allow.auto.create.topics": False,
                    "check.crcs": True,
                    "fetch.error.backoff.ms": 50,
                    "fetch.message.max.bytes": 4 << 20,
                    "queued.max.messages.kbytes": 64 << 10,
                    "socket.nagle.disable": True,
                    "reconnect.backoff.ms": 50,
                    "reconnect.backoff.max.ms": 500,
                    "topic.metadata.refresh.fast.interval.ms": 100,
                }
            )
        )
        self._moved = threading.Condition()
        self._positions: dict[int, int] = {}
        self._to_begin: set[int] = set()
        self._waiting: dict[int, tuple[int, int]] = {}
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self.failure: Unavailable | None = None

    def start(self, take: Take, partitions: Sequence[int], beginnings: Beginnings) -> None:
        from confluent_kafka import OFFSET_BEGINNING, TopicPartition

        self._take, self._beginnings = take, beginnings
        self._consumer.assign([TopicPartition(self._facts, 0, OFFSET_BEGINNING)])
        self._to_begin = set(partitions)
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def await_positions(self, wanted: Mapping[int, int], timeout_s: float, look: Callable[[], None]) -> bool:
        """Waits until all records before these offsets were handed on; `look` is called now and then and may raise."""
        deadline = time.monotonic() + timeout_s
        with self._moved:
            while any(self._positions.get(partition, 0) < end for partition, end in wanted.items()):
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                look()
                self._moved.wait(min(left, WAIT_S))
        return True

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        self._consumer.close()

    # -- the thread

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                self._turn()
        except UnderstudyError as error:
            logger.error("the log cannot be followed: %s", error)
            self.failure = Unavailable(error.what, why=error.why, fix=error.fix)
        except Exception as error:
            logger.exception("the log cannot be followed")
            self.failure = Unavailable(
                "the log cannot be followed",
                why=f"{type(error).__name__}: {error}",
                fix="see the node's log in the home directory; go on with --resume",
            )

    def _turn(self) -> None:
        self._begin()
        first = self._consumer.poll(WAIT_S)
        messages = [] if first is None else [first, *self._consumer.consume(BATCH, 0)]
        reads: list[Read] = []
        positions: dict[int, int] = {}
        for message in messages:
            partition = FACTS if message.topic() == self._facts else message.partition()
            if message.error() is not None:
                self._look_at(message.error(), partition, message.offset(), positions)
            else:
                reads.append(Read(partition, message.offset(), message.key(), message.value()))
                positions[partition] = message.offset() + 1
        if reads:
            self._take(reads)
        if positions:
            with self._moved:
                self._positions |= positions
                self._moved.notify_all()
        self._serve()

    def _look_at(self, error: Any, partition: int, offset: int, positions: dict[int, int]) -> None:
        from confluent_kafka import KafkaError, TopicPartition

        if error.code() == KafkaError._PARTITION_EOF:
            # With compaction the last offsets may hold no record.
            positions[partition] = offset
        elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE) and partition != FACTS:
            logger.info("partition %d was trimmed while it was not read: it is begun again", partition)
            self._consumer.incremental_unassign([TopicPartition(self._bags, partition)])
            self._to_begin.add(partition)
        elif error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._AUTO_OFFSET_RESET) or error.fatal():
            raise Unavailable(
                "the log in Kafka cannot be read",
                why=error.str(),
                fix="check the rights of the user and that nobody removed the topics; then go on with --resume",
            )
        else:
            logger.warning("the log waits: %s", error.str())

    def _begin(self) -> None:
        from confluent_kafka import TopicPartition

        if self._to_begin:
            low, facts_end = self._beginnings(sorted(self._to_begin))
            self._waiting |= {partition: (offset, facts_end) for partition, offset in low.items()}
            self._to_begin = set()
        with self._moved:
            reached = self._positions.get(FACTS, 0)
        ready = {partition: low for partition, (low, facts_end) in self._waiting.items() if facts_end <= reached}
        if ready:
            self._consumer.incremental_assign([TopicPartition(self._bags, p, low) for p, low in ready.items()])
            self._waiting = {p: place for p, place in self._waiting.items() if p not in ready}
            with self._moved:
                self._positions |= ready
                self._moved.notify_all()
