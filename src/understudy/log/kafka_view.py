"""All partitions of a run as far as this node has read them, and everybody who waits for something in them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from understudy.log import kafka_facts, kafka_records
from understudy.log.bag_cache import BagCache
from understudy.log.kafka_facts import Fact, Facts
from understudy.log.kafka_order import Fate, Order
from understudy.log.kafka_records import Piece, Record
from understudy.log.kafka_wire import FACTS, Read
from understudy.model.names import SliceId

LOOK_S = 0.5
"""While somebody waits: time between two looks at whether waiting still makes sense."""


class View:
    """`take` is called by the thread that reads; everything else by any, under `lock` where it says so.

    The order of a partition decides about bags (`kafka_order.py`). This class hands its answers to the writers that
    wait for them, and files to the cache: only bags of slices that this node reads (`want`).
    """

    def __init__(self, slices: Sequence[SliceId], cache: BagCache) -> None:
        self.lock = threading.Condition()
        self.facts = Facts()
        self.cache = cache
        self._slices = tuple(slices)
        self.orders = {slice_id: Order(str(slice_id)) for slice_id in slices}
        self._wanted: set[SliceId] = set()
        self._fates: dict[str, Fate | None] = {}
        self._unread: dict[str, None] = {}

    # -- the thread that reads

    def take(self, batch: Sequence[Read]) -> None:
        for read in batch:
            if read.partition == FACTS:
                self._take_fact(read)
            else:
                self._take_record(self._slices[read.partition], read)
        with self.lock:
            self.lock.notify_all()

    def _take_fact(self, read: Read) -> None:
        fact = kafka_facts.decode(read.key, read.value)
        if fact is None:
            return
        with self.lock:
            self.facts.apply(fact)
            self._unread.pop(fact.token, None)
            if fact.key[0] == kafka_facts.FENCE and not fact.gone:
                _, name, generation = fact.key
                self.orders[SliceId.parse(name)].carry(generation, fact.value)

    def _take_record(self, slice_id: SliceId, read: Read) -> None:
        record, value = kafka_records.decode(read.key), read.value or b""
        if record is None:
            return
        order = self.orders[slice_id]
        if isinstance(record, Piece):
            self._stage(slice_id, order, record, value)
        with self.lock:
            before = set() if isinstance(record, Piece) else set(order.bags)
            fate = order.apply(read.offset, record, value)
            self.cache.drop(slice_id, before - set(order.bags))
            self._file(slice_id, record, fate)
            if fate is not None and record.writer in self._fates:
                self._fates[record.writer] = fate

    def _stage(self, slice_id: SliceId, order: Order, piece: Piece, value: bytes) -> None:
        # Only this thread changes an order, so what is asked here still holds when the record is applied.
        if slice_id in self._wanted and order.is_open(piece.epoch) and self.cache.has_room(piece.size):
            self.cache.stage(slice_id, piece.epoch, piece.writer, value=value, first=piece.number == 0)

    def _file(self, slice_id: SliceId, record: Record, fate: Fate | None) -> None:
        if not isinstance(record, Piece):
            return
        if fate is Fate.FIRST:
            self.cache.keep(slice_id, record.epoch, record.writer, record.size)
        elif fate is not None and slice_id in self._wanted:
            self.cache.give_up(slice_id, record.epoch, record.writer)

    # -- under the lock

    def want(self, slice_id: SliceId) -> None:
        """From now on the slice's bags are kept as files when they arrive."""
        self._wanted.add(slice_id)

    def expect(self, writer: str) -> None:
        """A record of this writer will come; `fate` will tell what became of it."""
        self._fates[writer] = None

    def fate(self, writer: str) -> Fate | None:
        return self._fates[writer]

    def decide(self, writer: str, fate: Fate) -> None:
        with self.lock:
            if writer in self._fates:
                self._fates[writer] = fate
                self.lock.notify_all()

    def forget(self, writer: str) -> None:
        self._fates.pop(writer, None)

    def wrote(self, fact: Fact) -> None:
        """A fact that this process is about to send."""
        self.facts.write(fact)
        if not fact.gone:
            self._unread[fact.token] = None

    def unread(self) -> set[str]:
        """Facts of this process that were not read yet, so may not be durable."""
        return set(self._unread)

    # -- waiting

    def wait(self, ready: Callable[[], bool], timeout_s: float, look: Callable[[], None]) -> bool:
        """Waits, under the lock, until something holds; `look` is called now and then and may raise."""
        deadline = time.monotonic() + timeout_s
        with self.lock:
            while not ready():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                look()
                self.lock.wait(min(left, LOOK_S))
        return True
