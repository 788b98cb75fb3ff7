"""Bags as records in Kafka: one partition per slice, and its order is the agreement.

<prefix>.<run>.bags     a partition per slice: bags in pieces, fences, trims
<prefix>.<run>.facts    compacted: acknowledgements, progress of sinks, cuts, bookmarks, fences that trims have passed

Whoever appends the first complete bag of an epoch has published it, and learns that by reading its own record. A node
follows all partitions (`kafka_client.py`) and answers from what it has read (`kafka_view.py`), so it may be some
milliseconds behind. Every answer that others build on is made by appending a record and reading up to it.
docs/decisions/0015-kafka-log.md has the reasons.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from understudy.log import bag, kafka_facts
from understudy.log.bag import DamagedBag
from understudy.log.interface import Fenced, Published, Stored
from understudy.log.kafka_order import Entry, Fate
from understudy.log.kafka_records import ANY_GENERATION, Fence, Record, Trim, Void, decode, encode, pieces
from understudy.log.kafka_view import View
from understudy.log.kafka_wire import FACTS, Wire
from understudy.log.kafka_writer import Writer
from understudy.model.names import SliceId


class KafkaLog:
    """A `Log` that several hosts share. Everything it appends is durable before it counts, so `settle` has no work.

    It has as many methods as a `Log` has questions.
    """

    def __init__(self, slices: Sequence[SliceId], wire: Wire, view: View) -> None:
        self._partitions = {slice_id: number for number, slice_id in enumerate(slices)}
        self._wire, self._view, self._writer = wire, view, Writer(wire, view)
        self._forgotten: dict[SliceId, int] = {}
        wire.follow(view.take)

    def close(self) -> None:
        self._wire.close()

    # -- bags

    def publish(self, bag: bag.Bag, *, durable: bool, generation: int | None = None) -> Published:  # noqa: ARG002
        slice_id, epoch = bag.header.slice, bag.header.epoch
        own = Stored(bag.header, self._view.cache.path(slice_id, epoch), bag.start)
        mine = ANY_GENERATION if generation is None else generation
        what, deadline = f"epoch {epoch} of {slice_id} could not be published", self._writer.deadline()
        while self._is_open(slice_id, epoch, mine):
            fate = self._writer.append(
                self._partitions[slice_id],
                lambda writer: pieces(bag, writer, mine, self._wire.record_bytes),
                what,
                deadline,
            )
            if fate is Fate.FIRST:
                return Published(True, own)
            if fate is Fate.REFUSED:
                raise Fenced(slice_id, epoch)
        # One that was there may be trimmed by now: then all readers have it, and ours is as good.
        return Published(False, self.fetch(slice_id, epoch) or own)

    def _is_open(self, slice_id: SliceId, epoch: int, generation: int) -> bool:
        with self._view.lock:
            order = self._view.orders[slice_id]
            if not order.is_open(epoch):
                return False
            if generation != ANY_GENERATION and order.fenced > generation:
                raise Fenced(slice_id, epoch)
            return True

    def fetch(self, slice_id: SliceId, epoch: int) -> Stored | None:
        view = self._view
        with view.lock:
            view.want(slice_id)
            entry = view.orders[slice_id].bags.get(epoch)
            there = entry is not None and view.cache.hand_out(slice_id, epoch)
        if entry is None or not (there or self._load(slice_id, entry)):
            return None
        path = view.cache.path(slice_id, epoch)
        try:
            header, start = bag.read_header(path)
        except FileNotFoundError:
            return None
        return Stored(header, path, start)

    def _load(self, slice_id: SliceId, entry: Entry) -> bool:
        """Reads a bag from the brokers into the cache; False if it was trimmed meanwhile.

        Raises
        ------
        DamagedBag
            If the records are there and do not make up the bag that counts.
        """
        values = list(self._values(slice_id, entry))
        crc = 0
        for value in values:
            crc = zlib.crc32(value, crc)
        view, epoch = self._view, entry.epoch
        if (sum(map(len, values)), crc) != (entry.size, entry.crc):
            self._wire.sync([self._partitions[slice_id]])
            with view.lock:
                if view.orders[slice_id].bags.get(epoch) != entry:
                    return False
            raise DamagedBag(view.cache.path(slice_id, epoch), "its records in Kafka do not match its checksum")
        view.cache.write(slice_id, epoch, values)
        with view.lock:
            view.cache.note(slice_id, epoch, entry.size)
            if view.orders[slice_id].bags.get(epoch) != entry:
                view.cache.drop(slice_id, [epoch])
                return False
        return True

    def _values(self, slice_id: SliceId, entry: Entry) -> Iterator[bytes]:
        for read in self._wire.read(self._partitions[slice_id], entry.first, entry.last):
            record = decode(read.key)
            if record is not None and record.writer == entry.writer:
                yield read.value or b""

    def await_bags(self, slices: Sequence[SliceId], epoch: int, timeout_s: float) -> bool:
        view = self._view
        with view.lock:
            for slice_id in slices:
                view.want(slice_id)
        orders = [view.orders[slice_id] for slice_id in slices]
        return view.wait(lambda: all(epoch in order.bags for order in orders), timeout_s, self._wire.check)

    def newest(self, slice_id: SliceId) -> int:
        # A slice of a sink has no partition: it publishes nothing.
        order = self._view.orders.get(slice_id)
        return -1 if order is None else order.newest

    def first_missing(self, slice_id: SliceId, above: int = -1) -> int:
        # A source begins here, and must know every cut that the bags it finds were made by.
        self._wire.sync([self._partitions[slice_id], FACTS])
        with self._view.lock:
            return self._view.orders[slice_id].first_missing(above)

    def settle(self, slice_id: SliceId, epoch: int) -> None:
        """Nothing is left to do: a bag that was read is on all brokers that a write waits for."""

    # -- progress

    def reach(self, reader: SliceId, epoch: int) -> None:
        if epoch != self.reached(reader):
            self._writer.note(kafka_facts.reached(reader), epoch)

    def reached(self, reader: SliceId) -> int:
        with self._view.lock:
            return self._view.facts.reached.get(kafka_facts.reached(reader), -1)

    def acknowledge(self, reader: SliceId, upstream: SliceId, epoch: int) -> None:
        if epoch > self.acknowledged(reader, upstream):
            self._writer.note(kafka_facts.ack(reader, upstream), epoch)

    def acknowledged(self, reader: SliceId, upstream: SliceId) -> int:
        with self._view.lock:
            return self._view.facts.acks.get(kafka_facts.ack(reader, upstream), -1)

    def floor(self, slice_id: SliceId, readers: Sequence[SliceId]) -> int:
        acknowledged = [self.acknowledged(reader, slice_id) for reader in readers]
        return min(acknowledged) if acknowledged else self.newest(slice_id)

    # -- trimming

    def trim(self, slice_id: SliceId, readers: Sequence[SliceId]) -> int:
        view = self._view
        floor = self.floor(slice_id, readers)
        with view.lock:
            order = view.orders[slice_id]
            done = max((epoch for epoch in order.bags if epoch <= floor and epoch < order.newest), default=-1)
        if done >= 0:
            self._secure_acknowledgements(slice_id, readers)
            self._append(slice_id, lambda writer: Trim(done, writer), "trimmed")
        self._release(slice_id)
        with view.lock:
            passed = sorted(epoch for epoch in view.facts.marks.get(str(slice_id), {}) if epoch <= floor)
        for epoch in passed[:-1]:
            self._writer.remove(kafka_facts.mark(slice_id, epoch))
        return done

    def _secure_acknowledgements(self, slice_id: SliceId, readers: Sequence[SliceId]) -> None:
        """What is removed because of acknowledgements must never be found unacknowledged."""
        for reader in readers:
            key = kafka_facts.ack(reader, slice_id)
            with self._view.lock:
                lowered, highest = key in self._view.facts.lowered, self._view.facts.acks.get(key, -1)
            if lowered:
                # A writer that was late has written less; after compaction nobody would know of more.
                self._writer.note(key, highest)
        self._writer.await_facts()

    def _release(self, slice_id: SliceId) -> None:
        """Lets the brokers remove what no reader needs, when the fences among it are kept elsewhere."""
        view = self._view
        with view.lock:
            order = view.orders[slice_id]
            before = order.needed_from() or 0
            kept = view.facts.fences.get(str(slice_id), {})
            passed = {generation: at for generation, at in order.fences.items() if at < before}
            carried = {generation: at for generation, at in passed.items() if generation not in kept}
        if before <= self._forgotten.get(slice_id, 0):
            return
        for generation, at in carried.items():
            self._writer.note(kafka_facts.fence(slice_id, generation), at)
        if carried:
            self._writer.await_facts()
        self._wire.forget(self._partitions[slice_id], before)
        self._forgotten[slice_id] = before

    # -- damage

    def damaged(self, slice_id: SliceId, first: int) -> list[int]:
        with self._view.lock:
            entries = [entry for epoch, entry in sorted(self._view.orders[slice_id].bags.items()) if epoch >= first]
        return [entry.epoch for entry in entries if not self._is_whole(slice_id, entry)]

    def set_aside(self, slice_id: SliceId, epoch: int) -> None:
        with self._view.lock:
            entry = self._view.orders[slice_id].bags.get(epoch)
        if entry is not None and not self._is_whole(slice_id, entry):
            self._append(slice_id, lambda writer: Void(epoch, entry.writer, writer), "set aside")

    def _is_whole(self, slice_id: SliceId, entry: Entry) -> bool:
        """Whether a bag can be read. A file of this node that is damaged is replaced by what the brokers hold."""
        view = self._view
        if bag.is_whole(view.cache.path(slice_id, entry.epoch)):
            return True
        with view.lock:
            view.cache.drop(slice_id, [entry.epoch])
        try:
            self._load(slice_id, entry)
        except DamagedBag:
            return False
        return True

    # -- fences and cuts

    def fence(self, slice_id: SliceId, generation: int) -> None:
        if generation > self.fenced(slice_id):
            self._append(slice_id, lambda writer: Fence(generation, writer), "fenced")

    def fenced(self, slice_id: SliceId) -> int:
        with self._view.lock:
            return self._view.orders[slice_id].fenced

    def record(self, slice_id: SliceId, epoch: int, value: Any) -> Any:
        with self._view.lock:
            there = epoch in self._view.facts.cut_epochs(slice_id)
        if not there:
            self._writer.note(kafka_facts.cut(slice_id, epoch, self._writer.token()), value)
            self._writer.await_facts()
        return self.recorded(slice_id, epoch)

    def recorded(self, slice_id: SliceId, epoch: int) -> Any:
        with self._view.lock:
            return self._view.facts.recorded(slice_id, epoch)

    def cuts(self, slice_id: SliceId) -> range:
        with self._view.lock:
            epochs = self._view.facts.cut_epochs(slice_id)
        # Whatever lies below a hole was removed: a late writer may have written it again.
        oldest = newest = max(epochs, default=-1)
        while oldest - 1 in epochs:
            oldest -= 1
        return range(oldest, newest + 1) if epochs else range(0)

    def trim_cuts(self, slice_id: SliceId, readers: Mapping[SliceId, Sequence[SliceId]]) -> None:
        view = self._view
        with view.lock:
            epochs = view.facts.cut_epochs(slice_id)
        below = min([*(self.floor(each, own) for each, own in readers.items()), max(epochs, default=0)])
        done = sorted(epoch for epoch in epochs if epoch < below)
        if not done:
            return
        for each, own in readers.items():
            self._secure_acknowledgements(each, own)
        for epoch in done:
            with view.lock:
                keys = view.facts.cut_keys(slice_id, epoch)
            for key in keys:
                self._writer.remove(key)
        self._writer.wait(lambda: view.facts.cut_epochs(slice_id).isdisjoint(done), "cuts could not be trimmed")

    # -- bookmarks

    def mark(self, slice_id: SliceId, epoch: int, bookmark: Any) -> None:
        self._writer.note(kafka_facts.mark(slice_id, epoch), bookmark)

    def bookmark(self, slice_id: SliceId, epoch: int) -> Any:
        with self._view.lock:
            marks = self._view.facts.marks.get(str(slice_id), {})
            return marks.get(max((number for number in marks if number <= epoch), default=-1))

    def _append(self, slice_id: SliceId, make: Callable[[str], Record], doing: str) -> None:
        """Appends a record to a slice's partition and reads up to it."""
        what, deadline = f"{slice_id} could not be {doing}", self._writer.deadline()
        fate = None
        while fate is not Fate.NOTED:
            fate = self._writer.append(
                self._partitions[slice_id], lambda writer: [(encode(make(writer)), b"")], what, deadline
            )
