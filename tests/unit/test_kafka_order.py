"""The order of a partition: whoever reads it, from wherever it begins, comes to the same bags."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.builders import WORDS, a_bag, rows_of

from understudy.log.kafka_order import Fate, Order
from understudy.log.kafka_records import (
    ANY_GENERATION,
    Fence,
    Piece,
    Record,
    Trim,
    Void,
    decode,
    encode,
    pieces,
)

Sent = tuple[Record, bytes]


def a_bag_of(epoch: int, writer: str, *values: bytes, generation: int = ANY_GENERATION) -> list[Sent]:
    whole = b"".join(values)
    made = [
        Piece("words[0]", epoch, generation, number, len(values), len(whole), zlib.crc32(whole), writer)
        for number in range(len(values))
    ]
    return list(zip(made, values, strict=True))


def read(order: Order, *records: Sent) -> list[Fate | None]:
    return [order.apply(offset, record, value) for offset, (record, value) in enumerate(records)]


def test_the_first_complete_bag_counts_not_the_first_that_was_begun() -> None:
    order = Order("words[0]")
    slow, quick = a_bag_of(4, "slow", b"a", b"b"), a_bag_of(4, "quick", b"x", b"y")
    fates = read(order, slow[0], quick[0], quick[1], slow[1])
    assert fates == [None, None, Fate.FIRST, Fate.SECOND]
    assert (order.bags[4].writer, order.bags[4].first, order.bags[4].last) == ("quick", 1, 2)


@pytest.mark.parametrize(
    "records",
    [
        a_bag_of(0, "w", b"a", b"b")[1:],
        [a_bag_of(0, "w", b"a", b"b", b"c")[0], a_bag_of(0, "w", b"a", b"b", b"c")[2]],
        [(a_bag_of(0, "w", b"a")[0][0], b"A")],
        [(Piece("other[0]", 0, ANY_GENERATION, 0, 1, 1, zlib.crc32(b"a"), "w"), b"a")],
    ],
    ids=["begins in the middle", "misses a piece", "has another content", "is of another slice"],
)
def test_a_bag_that_is_not_whole_counts_as_absent(records: list[Sent]) -> None:
    order = Order("words[0]")
    assert read(order, *records)[-1] is Fate.BROKEN
    assert order.newest == -1
    assert order.apply(99, *a_bag_of(0, "again", b"a")[0]) is Fate.FIRST


def test_a_bag_behind_a_fence_for_a_newer_generation_is_refused() -> None:
    order = Order("words[0]")
    fates = read(
        order,
        *a_bag_of(0, "old", b"a", generation=1),
        (Fence(2, "new"), b""),
        *a_bag_of(1, "old", b"a", generation=1),
        *a_bag_of(1, "any", b"a"),
        *a_bag_of(2, "new", b"a", generation=2),
    )
    assert fates == [Fate.FIRST, Fate.NOTED, Fate.REFUSED, Fate.FIRST, Fate.FIRST]
    assert order.fenced == 2


def test_a_fence_that_is_known_early_refuses_nothing_before_it() -> None:
    """A node that lags hears of a fence, as a fact, before it has read the bags in front of it."""
    order = Order("words[0]")
    order.carry(2, offset=10)
    bag = a_bag_of(0, "old", b"a", generation=1)[0]
    assert order.apply(9, *bag) is Fate.FIRST
    assert order.apply(11, *a_bag_of(1, "old", b"a", generation=1)[0]) is Fate.REFUSED


def test_what_was_set_aside_can_be_published_again() -> None:
    order = Order("words[0]")
    fates = read(
        order,
        *a_bag_of(0, "w", b"a"),
        (Void(0, "somebody", "x"), b""),
        (Void(0, "w", "x"), b""),
        *a_bag_of(0, "again", b"a"),
        (Void(0, "w", "late"), b""),
    )
    assert fates == [Fate.FIRST, Fate.NOTED, Fate.NOTED, Fate.FIRST, Fate.NOTED]
    assert order.bags[0].writer == "again"


def test_the_newest_bag_is_never_trimmed() -> None:
    order = Order("words[0]")
    read(order, *a_bag_of(0, "w", b"a"), *a_bag_of(1, "v", b"a"), (Trim(7, "t"), b""))
    assert (list(order.bags), order.newest, order.trimmed) == ([1], 1, 0)
    assert order.apply(9, *a_bag_of(0, "late", b"a")[0]) is Fate.SECOND
    assert order.apply(10, *a_bag_of(2, "next", b"a")[0]) is Fate.FIRST


def test_what_is_being_written_is_not_trimmed_away() -> None:
    order = Order("words[0]")
    first, last = a_bag_of(3, "slow", b"a", b"b")
    read(order, *a_bag_of(1, "w", b"a"), first, *a_bag_of(2, "v", b"a"), (Trim(1, "t"), b""))
    assert order.needed_from() == 1
    assert order.apply(4, *last) is Fate.FIRST


@given(st.integers(0, 3000), st.integers(1, 5000))
def test_a_bag_is_put_together_from_its_records(rows: int, limit: int) -> None:
    made = a_bag(5, rows_of(*range(rows)))
    sent = list(pieces(made, "w", 3, limit))
    assert all(0 < len(value) <= limit for _, value in sent)
    order = Order(str(WORDS))
    fates = []
    for offset, (key, value) in enumerate(sent):
        record = decode(key)
        assert record is not None
        assert encode(record) == key
        fates.append(order.apply(offset, record, value))
    assert fates == [None] * (len(sent) - 1) + [Fate.FIRST]
    assert b"".join(value for _, value in sent) == b"".join(bytes(part) for part in made.parts)


@pytest.mark.parametrize("key", [None, b"", b"x", b"[]", b"3", b'{"kind":"bag"}', b'{"kind":"new"}', b'{"kind":[]}'])
def test_a_record_that_is_not_ours_counts_as_absent(key: bytes | None) -> None:
    assert decode(key) is None


# -- agreement


@dataclass
class Reader:
    order: Order = field(default_factory=lambda: Order("words[0]"))
    position: int = 0


@dataclass
class Partition:
    """Records, where they begin since the last trim, and the fences that are facts."""

    records: list[Sent] = field(default_factory=list)
    low: int = 0
    facts: dict[int, int] = field(default_factory=dict)

    def step(self, reader: Reader, count: int) -> None:
        if reader.position < self.low:
            for generation, offset in self.facts.items():
                reader.order.carry(generation, offset)
            reader.position = self.low
        for record, value in self.records[reader.position : reader.position + count]:
            reader.order.apply(reader.position, record, value)
            reader.position += 1

    def release(self, by: Reader) -> None:
        """As `KafkaLog._release`: fences become facts, then records go."""
        before = by.order.needed_from() or 0
        self.facts |= {generation: at for generation, at in by.order.fences.items() if at < before}
        self.low = max(self.low, before)


EPOCH, GENERATION = st.integers(0, 3), st.integers(1, 2)
WRITER = st.one_of(GENERATION, st.just(ANY_GENERATION))
HAPPENINGS = st.one_of(
    st.tuples(st.just("begin"), EPOCH, WRITER, st.integers(1, 2)),
    st.tuples(st.just("write"), st.integers(0, 3)),
    st.tuples(st.just("write"), st.integers(0, 3)),
    st.tuples(st.just("fence"), GENERATION),
    st.tuples(st.just("trim"), EPOCH),
    st.tuples(st.just("release"), st.integers(0, 1)),
    st.tuples(st.just("open")),
    st.tuples(st.just("read"), st.integers(0, 1), st.integers(1, 6)),
    st.tuples(st.just("tell"), st.integers(0, 1)),
)


class World:
    """Writers write at the same time; readers lag, begin late, and find the front trimmed. One has read everything."""

    def __init__(self) -> None:
        self.partition, self.everything = Partition(), Reader()
        self.readers = [Reader()]
        self._writing: list[list[Sent]] = []
        self._writers = 0

    def reader(self, number: int) -> Reader:
        return self.readers[number % len(self.readers)]

    def happen(self, kind: str, *arguments: int) -> None:
        getattr(self, kind)(*arguments)
        # The one that has read everything reads at once, before anything is removed.
        low, self.partition.low = self.partition.low, 0
        self.partition.step(self.everything, len(self.partition.records))
        self.partition.low = low

    def begin(self, epoch: int, generation: int, count: int) -> None:
        self._writers += 1
        values = [b"%d" % self._writers] * count
        self._writing.append(a_bag_of(epoch, f"w{self._writers}", *values, generation=generation))

    def write(self, number: int) -> None:
        if self._writing:
            self.partition.records.append(self._writing[number % len(self._writing)].pop(0))
            self._writing = [left for left in self._writing if left]

    def fence(self, generation: int) -> None:
        self.partition.records.append((Fence(generation, "f"), b""))

    def trim(self, epoch: int) -> None:
        self.partition.records.append((Trim(epoch, "t"), b""))

    def release(self, number: int) -> None:
        """Any node may do it, however far it has read."""
        self.partition.release(self.reader(number))

    def open(self) -> None:
        self.readers.append(Reader())
        self.partition.step(self.readers[-1], 0)

    def read(self, number: int, count: int) -> None:
        self.partition.step(self.reader(number), count)

    def tell(self, number: int) -> None:
        for generation, offset in self.partition.facts.items():
            self.reader(number).order.carry(generation, offset)


@settings(max_examples=200)
@given(st.lists(HAPPENINGS, min_size=10, max_size=40))
def test_all_readers_agree(happenings: list[tuple[Any, ...]]) -> None:
    world = World()
    for happening in happenings:
        world.happen(*happening)
    truth = world.everything.order
    event(f"{min(world.partition.low, 3)} trimmed, {min(len(truth.fences), 2)} fences")
    for reader in world.readers:
        world.partition.step(reader, len(world.partition.records))
        needed = {epoch: entry for epoch, entry in reader.order.bags.items() if epoch > truth.trimmed}
        assert needed == {epoch: entry for epoch, entry in truth.bags.items() if epoch > truth.trimmed}
        assert (reader.order.newest, reader.order.fenced) == (truth.newest, truth.fenced)
