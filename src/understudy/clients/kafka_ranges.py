"""Ranges of offsets read one after the other, without asking brokers for the same records twice."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Ranges = Mapping[int, tuple[int, int]]
"""The first offset of every partition, and the one behind the last."""

Failed = Callable[[Any, int], None]
Idle = Callable[[bool, list[int]], None]

AHEAD = 20_000
"""Records of a partition that are kept for later ranges before it is paused."""
_BATCH = 2000
_WAIT_S = 0.2


class RangeReader:
    """Reads what lies in ranges of offsets; whoever continues where the last ranges ended finds it fetched already.

    Offsets may hold no record: markers of transactions, aborted records, compacted ones. So a range is over when a
    record behind it was seen, or the end of the partition, or when its last offset was a record. Used by one thread.

    Parameters
    ----------
    consumer
        A consumer of confluent-kafka with `enable.partition.eof`.
    """

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._forget()

    def _forget(self) -> None:
        self._topic: str | None = None
        self._next: dict[int, int] = {}  # where each partition's last range ended
        self._reached: dict[int, int] = {}  # all records below were handed to us
        self._ahead: dict[int, deque[Any]] = {}  # of these, the ones behind the last range
        self._paused: set[int] = set()

    def read(self, topic: str, ranges: Ranges, failed: Failed, idle: Idle) -> Iterator[Any]:
        """The records of these ranges, each partition in its order.

        `failed` is called with an error and its partition, and returns if waiting helps; `idle` after every wait, with
        whether something came and which partitions are not at their end.
        """
        if all(begin >= end for begin, end in ranges.values()):
            return
        if topic != self._topic or any(self._next.get(p) != begin for p, (begin, _) in ranges.items()):
            self._assign(topic, ranges)
        # Until all is read nobody may continue here.
        self._topic = None
        self._resume(topic)
        for partition, (_, end) in ranges.items():
            kept = self._ahead[partition]
            while kept and kept[0].offset() < end:
                yield kept.popleft()
        while left := [p for p, (_, end) in ranges.items() if self._reached[p] < end]:
            messages = self._poll()
            idle(bool(messages), left)
            for message in messages:
                if self._take(message, ranges, failed):
                    yield message
            self._pause(topic, left)
        self._topic, self._next = topic, {p: end for p, (_, end) in ranges.items()}

    def _assign(self, topic: str, ranges: Ranges) -> None:
        from confluent_kafka import TopicPartition

        self._forget()
        self._consumer.assign([TopicPartition(topic, p, begin) for p, (begin, _) in ranges.items()])
        self._reached = {p: begin for p, (begin, _) in ranges.items()}
        self._ahead = {p: deque() for p in ranges}

    def _poll(self) -> list[Any]:
        """Whatever is there; waits only for the first."""
        first = self._consumer.poll(_WAIT_S)
        return [] if first is None else [first, *self._consumer.consume(_BATCH, 0)]

    def _take(self, message: Any, ranges: Ranges, failed: Failed) -> bool:
        """Whether a message is a record of its range; one behind it is kept."""
        from confluent_kafka import KafkaError

        error, partition = message.error(), message.partition()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            failed(error, partition)
            return False
        if message.offset() < self._reached.get(partition, message.offset() + 1):
            return False  # handed to us before
        if error is not None:
            self._reached[partition] = max(self._reached[partition], message.offset())
            return False
        self._reached[partition] = message.offset() + 1
        if message.offset() < ranges[partition][1]:
            return True
        self._ahead[partition].append(message)
        return False

    def _pause(self, topic: str, left: list[int]) -> None:
        """A slow partition must not let the others fill the memory."""
        from confluent_kafka import TopicPartition

        full = {p for p, kept in self._ahead.items() if len(kept) > AHEAD} - self._paused - set(left)
        if full:
            self._consumer.pause([TopicPartition(topic, partition) for partition in full])
            self._paused |= full

    def _resume(self, topic: str) -> None:
        from confluent_kafka import TopicPartition

        if self._paused:
            self._consumer.resume([TopicPartition(topic, partition) for partition in self._paused])
            self._paused = set()
