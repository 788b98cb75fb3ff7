"""Ranges of offsets over a consumer that is played: holes, ends, records that come ahead, and a second look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from understudy.clients import kafka_ranges
from understudy.clients.kafka_ranges import RangeReader


@dataclass(frozen=True)
class Said:
    of: int
    at: int
    what: Any = None

    def partition(self) -> int:
        return self.of

    def offset(self) -> int:
        return self.at

    def error(self) -> Any:
        return self.what


class Played:
    """A log per partition, of which only some offsets hold records; every end is announced, as librdkafka does."""

    def __init__(self, records: dict[int, list[int]], ends: dict[int, int]) -> None:
        self.records, self.ends = records, ends
        self.assigned = 0
        self.paused: set[int] = set()
        self._events: Iterator[Said] = iter(())

    def assign(self, places: list[Any]) -> None:
        self.assigned += 1
        self._events = iter(())
        self._at = {place.partition: place.offset for place in places}

    def _fetch(self) -> Iterator[Said]:
        for partition in sorted(self._at):
            if partition in self.paused:
                continue
            begin, end = self._at[partition], self.ends[partition]
            for offset in [one for one in self.records[partition] if begin <= one < end]:
                self._at[partition] = offset + 1
                yield Said(partition, offset)
            if begin < end or begin == end == 0:
                self._at[partition] = end
                yield Said(partition, end, KafkaError(KafkaError._PARTITION_EOF))

    def poll(self, timeout: float) -> Said | None:
        found = next(self._events, None)
        if found is None:
            self._events = self._fetch()
            found = next(self._events, None)
        return found

    def consume(self, most: int, timeout: float) -> list[Said]:
        return list(islice(self._events, 3))

    def pause(self, places: list[Any]) -> None:
        self.paused |= {place.partition for place in places}

    def resume(self, places: list[Any]) -> None:
        self.paused -= {place.partition for place in places}


def raises(error: Any, *_: Any) -> None:
    raise AssertionError(error)


def waits(came: bool, left: list[int]) -> None:
    assert came, f"nothing comes any more, and partitions {left} are not at their end"


def read(reader: RangeReader, ranges: dict[int, tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted((one.of, one.at) for one in reader.read("t", ranges, raises, waits))


logs = st.lists(st.lists(st.booleans(), min_size=1, max_size=12), min_size=1, max_size=3)


@given(logs, st.lists(st.integers(0, 5), max_size=8), st.integers(0, 2))
def test_every_record_comes_once_in_its_range(log: list[list[bool]], steps: list[int], ahead: int) -> None:
    records = {p: [at for at, there in enumerate(offsets) if there] for p, offsets in enumerate(log)}
    ends = {p: len(offsets) for p, offsets in enumerate(log)}
    consumer = Played(records, ends)
    reader = RangeReader(consumer)
    before = dict.fromkeys(ends, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka_ranges, "AHEAD", ahead)
        for step in [*steps, 12]:
            after = {p: min(ends[p], before[p] + step + p % 2) for p in ends}
            ranges = {p: (before[p], after[p]) for p in ends}
            expected = [(p, at) for p in ends for at in records[p] if before[p] <= at < after[p]]
            assert read(reader, ranges) == expected
            before = after
    assert consumer.assigned == 1, "nothing was asked for twice"


def test_a_range_read_again_is_the_same() -> None:
    consumer = Played({0: [0, 1, 3], 1: [2]}, {0: 4, 1: 3})
    reader = RangeReader(consumer)
    ranges = {0: (1, 4), 1: (0, 3)}
    assert read(reader, ranges) == read(reader, ranges) == [(0, 1), (0, 3), (1, 2)]
    assert consumer.assigned == 2


def test_reading_that_was_given_up_is_not_continued() -> None:
    consumer = Played({0: [0, 1, 2, 3]}, {0: 4})
    reader = RangeReader(consumer)
    half = reader.read("t", {0: (0, 2)}, raises, waits)
    assert next(half).at == 0
    half.close()  # type: ignore[attr-defined]
    assert read(reader, {0: (0, 2)}) == [(0, 0), (0, 1)]
    assert read(reader, {0: (2, 4)}) == [(0, 2), (0, 3)]
