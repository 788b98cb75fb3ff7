"""Kafka's partitions in memory: records in order, trimmed from the front, handed to every follower at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.log_contract import SLICES
from understudy.errors import Unavailable
from understudy.log.bag_cache import BagCache
from understudy.log.disk import Disk
from understudy.log.kafka_log import KafkaLog
from understudy.log.kafka_view import View
from understudy.log.kafka_wire import FACTS, Failed, Read, Take


class Broker:
    """`compact` keeps the last record of every key of the facts, as a broker does in its own time."""

    def __init__(self) -> None:
        self.partitions: dict[int, list[Read]] = {number: [] for number in (FACTS, *range(len(SLICES)))}
        self.ends = dict.fromkeys(self.partitions, 0)
        self.followers: list[Take] = []
        self.lock = threading.RLock()

    def append(self, partition: int, key: bytes, value: bytes | None) -> None:
        with self.lock:
            read = Read(partition, self.ends[partition], key, value)
            self.ends[partition] += 1
            self.partitions[partition].append(read)
            for take in self.followers:
                take([read])

    def follow(self, take: Take) -> None:
        with self.lock:
            for partition in (FACTS, *range(len(SLICES))):
                take(list(self.partitions[partition]))
            self.followers.append(take)

    def trim(self, partition: int, before: int) -> None:
        with self.lock:
            self.partitions[partition] = [read for read in self.partitions[partition] if read.offset >= before]

    def compact(self) -> None:
        with self.lock:
            last = {read.key: read for read in self.partitions[FACTS]}
            self.partitions[FACTS] = [
                read for read in self.partitions[FACTS] if last[read.key] is read and read.value is not None
            ]


class MemoryWire:
    """`lose` makes the next so many records fail; `spoil` changes a byte of records that are read again."""

    patience_s = 5.0

    def __init__(self, broker: Broker, record_bytes: int = 1 << 16) -> None:
        self.broker, self.record_bytes = broker, record_bytes
        self.lose = 0
        self.spoil = False

    def follow(self, take: Take) -> None:
        self.broker.follow(take)

    def send(self, partition: int, key: bytes, value: bytes | None, failed: Failed | None = None) -> None:
        if self.lose and failed is not None:
            self.lose -= 1
            failed()
        else:
            self.broker.append(partition, key, value)

    def sync(self, partitions: Sequence[int]) -> None:
        """Everything is handed on at once."""

    def read(self, partition: int, first: int, last: int) -> Iterator[Read]:
        with self.broker.lock:
            found = [read for read in self.broker.partitions[partition] if first <= read.offset <= last]
        for read in found:
            value = (read.value or b"")[:-1] + b"!" if self.spoil else read.value
            yield Read(read.partition, read.offset, read.key, value)

    def forget(self, partition: int, before: int) -> None:
        self.broker.trim(partition, before)

    def check(self) -> None:
        """Nothing makes it impossible to read."""

    def away(self, what: str) -> Unavailable:
        return Unavailable(what, why="brokers are away", fix="none")

    def close(self) -> None:
        """Nothing is held open."""


class MemoryLogs:
    """Logs of several nodes on one broker."""

    def __init__(self, directory: Path, cache_bytes: int = 1 << 30) -> None:
        self.broker, self._directory, self._cache_bytes = Broker(), directory, cache_bytes
        self.wires: list[MemoryWire] = []

    def open(self) -> KafkaLog:
        self.wires.append(MemoryWire(self.broker))
        cache = BagCache(self._directory / str(len(self.wires)), self._cache_bytes, Disk())
        return KafkaLog(SLICES, self.wires[-1], View(SLICES, cache))
