"""What a log in Kafka does beyond the promises of every log, with brokers in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.builders import COUNTS, WORDS, a_bag, everything_in, rows_of
from tests.log_contract import numbers, publish, there
from tests.memory_wire import MemoryLogs, MemoryWire

from understudy.errors import Unavailable
from understudy.log.bag_cache import IN_USE_S, BagCache
from understudy.log.disk import Disk
from understudy.log.interface import Fenced
from understudy.log.kafka_log import KafkaLog
from understudy.log.kafka_wire import FACTS


@pytest.fixture
def logs(tmp_path: Path) -> MemoryLogs:
    return MemoryLogs(tmp_path)


def before_the_next_record(wire: MemoryWire, monkeypatch: pytest.MonkeyPatch, action: Any) -> None:
    """Does something after a writer has decided to send, and before its record is in the partition."""
    send = wire.send

    def late(*arguments: Any) -> None:
        monkeypatch.setattr(wire, "send", send)
        action()
        send(*arguments)

    monkeypatch.setattr(wire, "send", late)


# -- fences


def test_a_zombie_that_is_fenced_while_it_publishes_is_refused(
    logs: MemoryLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie, successor = logs.open(), logs.open()
    before_the_next_record(logs.wires[0], monkeypatch, lambda: successor.fence(WORDS, 2))
    with pytest.raises(Fenced):
        zombie.publish(a_bag(0, rows_of(1)), durable=True, generation=1)
    assert successor.fetch(WORDS, 0) is None
    assert successor.publish(a_bag(0, rows_of(2)), durable=True, generation=2).first
    assert numbers(zombie.fetch(WORDS, 0)) == numbers(logs.open().fetch(WORDS, 0)) == [2]
    with pytest.raises(Fenced):
        zombie.publish(a_bag(1), durable=True, generation=1)
    assert not zombie.publish(a_bag(0, rows_of(1)), durable=True, generation=1).first, "what counts is told to anybody"


def test_a_fence_holds_after_it_was_trimmed(logs: MemoryLogs, monkeypatch: pytest.MonkeyPatch) -> None:
    log, zombie = logs.open(), logs.open()
    publish(log, 0)
    before_the_next_record(logs.wires[1], monkeypatch, lambda: log.fence(WORDS, 2))
    with pytest.raises(Fenced):
        zombie.publish(a_bag(5, rows_of(1)), durable=True, generation=1)
    publish(log, *range(1, 4))
    assert log.trim(WORDS, []) == 2
    assert [read.offset for read in logs.broker.partitions[0]] == [5, 6], "the fence is gone, and the zombie's bag"
    logs.broker.compact()
    late = logs.open()
    assert late.fenced(WORDS) == 2
    before_the_next_record(logs.wires[2], monkeypatch, lambda: publish(log, 4))
    with pytest.raises(Fenced):
        late.publish(a_bag(6), durable=True, generation=1)


# -- records that get lost, brokers that stay away


def test_what_was_lost_on_its_way_is_sent_again(logs: MemoryLogs) -> None:
    log = logs.open()
    logs.wires[0].lose = 2
    made = a_bag(0, rows_of(*range(30_000)))
    assert made.size > 3 * logs.wires[0].record_bytes
    assert log.publish(made, durable=False).first
    assert numbers(log.fetch(WORDS, 0)) == list(range(30_000))
    logs.wires[0].lose = 1
    log.fence(WORDS, 4)
    assert log.fenced(WORDS) == 4


def test_patience_ends(logs: MemoryLogs, monkeypatch: pytest.MonkeyPatch) -> None:
    log = logs.open()
    wire = logs.wires[0]
    monkeypatch.setattr(wire, "patience_s", 0.01)
    monkeypatch.setattr(wire, "send", lambda *_: None)
    with pytest.raises(Unavailable, match=r"epoch 3 of words\[0\] could not be published"):
        publish(log, 3)
    with pytest.raises(Unavailable, match=r"words\[0\] could not be fenced"):
        log.fence(WORDS, 2)
    with pytest.raises(Unavailable, match="facts"):
        log.record(WORDS, 0, 1)


# -- trimming and compacting


def test_a_run_that_is_trimmed_keeps_few_records(logs: MemoryLogs) -> None:
    log = logs.open()
    for epoch in range(100):
        publish(log, epoch)
        log.record(WORDS, epoch, epoch)
        log.mark(WORDS, epoch, epoch)
        log.acknowledge(COUNTS, WORDS, epoch)
        if epoch % 5 == 0:
            log.trim(WORDS, [COUNTS])
            log.trim_cuts(WORDS, {WORDS: [COUNTS]})
    logs.broker.compact()
    assert len(logs.broker.partitions[0]) < 10
    assert len(logs.broker.partitions[FACTS]) < 15
    late = logs.open()
    assert there(late, 100) == [95, 96, 97, 98, 99]
    assert (late.cuts(WORDS), late.bookmark(WORDS, 99), late.acknowledged(COUNTS, WORDS)) == (range(95, 100), 99, 99)


def test_a_late_acknowledgement_of_less_does_not_outlive_compaction(
    logs: MemoryLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, zombie = logs.open(), logs.open()
    publish(log, *range(6))
    before_the_next_record(logs.wires[1], monkeypatch, lambda: log.acknowledge(COUNTS, WORDS, 4))
    zombie.acknowledge(COUNTS, WORDS, 1)
    assert log.trim(WORDS, [COUNTS]) == 4
    logs.broker.compact()
    assert logs.open().acknowledged(COUNTS, WORDS) == 4


def test_the_cut_that_counted_first_counts_after_compaction(logs: MemoryLogs, monkeypatch: pytest.MonkeyPatch) -> None:
    log, other = logs.open(), logs.open()
    before_the_next_record(logs.wires[1], monkeypatch, lambda: log.record(WORDS, 0, "first"))
    assert other.record(WORDS, 0, "second") == "first"
    logs.broker.compact()
    assert logs.open().recorded(WORDS, 0) == "first"
    for epoch in (1, 2):
        log.record(WORDS, epoch, epoch)
    log.acknowledge(COUNTS, WORDS, 9)
    log.trim_cuts(WORDS, {WORDS: [COUNTS]})
    logs.broker.compact()
    assert logs.open().cuts(WORDS) == range(2, 3), "the second of an epoch is removed with the first"


# -- files of a node


def test_a_node_keeps_files_only_of_slices_that_it_reads(logs: MemoryLogs, tmp_path: Path) -> None:
    log, reader = logs.open(), logs.open()
    assert not reader.await_bags([COUNTS], 0, 0.0)
    publish(log, 0)
    log.publish(a_bag(0, None, COUNTS), durable=False)
    assert list(everything_in(tmp_path)) == ["2/counts/0/0000000000.bag"]
    assert log.fetch(WORDS, 0) is not None
    publish(log, 1)
    assert sorted(everything_in(tmp_path / "1")) == ["words/0/0000000000.bag", "words/0/0000000001.bag"]
    log.trim(WORDS, [])
    assert list(everything_in(tmp_path / "1")) == ["words/0/0000000001.bag"]


def test_a_bag_for_which_there_is_no_room_is_read_when_it_is_needed(tmp_path: Path) -> None:
    size = a_bag(0).size
    logs = MemoryLogs(tmp_path, cache_bytes=3 * size)
    log = logs.open()
    log.await_bags([WORDS], 0, 0.0)
    publish(log, *range(8))
    assert sorted(path.name for path in tmp_path.rglob("*.bag")) == [f"{epoch:010d}.bag" for epoch in range(3)]
    assert [numbers(log.fetch(WORDS, epoch)) for epoch in range(8)] == [[epoch] for epoch in range(8)]


def test_files_that_are_being_read_stay_whatever_the_limit(tmp_path: Path) -> None:
    now = 0.0
    cache = BagCache(tmp_path, 100, Disk(), lambda: now)

    def need(epoch: int) -> None:
        cache.write(WORDS, epoch, [bytes(40)])
        cache.note(WORDS, epoch, 40)

    for epoch in range(4):
        need(epoch)
    assert cache.size == 160
    now = IN_USE_S + 1
    cache.hand_out(WORDS, 1)
    need(4)
    assert sorted(everything_in(tmp_path)) == ["words/0/0000000001.bag", "words/0/0000000004.bag"]
    assert cache.size == 80


def test_a_file_that_is_gone_or_was_never_there_is_no_bag(logs: MemoryLogs) -> None:
    log = logs.open()
    publish(log, 0)
    stored = log.fetch(WORDS, 0)
    assert stored is not None
    stored.path.unlink()
    assert log.fetch(WORDS, 0) is None
    assert log.damaged(WORDS, 0) == []
    assert numbers(log.fetch(WORDS, 0)) == [0], "looking for damage has read it again"


def test_a_bag_that_brokers_cannot_read_any_more_is_made_again(logs: MemoryLogs) -> None:
    log, other = logs.open(), logs.open()
    publish(log, 0, 1)
    logs.wires[0].spoil = True
    assert log.damaged(WORDS, 0) == [0, 1]
    log.set_aside(WORDS, 1)
    logs.wires[0].spoil = False
    for one in (log, other, logs.open()):
        assert one.fetch(WORDS, 1) is None
        assert one.newest(WORDS) == 0
    assert log.publish(a_bag(1, rows_of(7)), durable=False).first
    assert numbers(other.fetch(WORDS, 1)) == [7]


def test_a_bag_that_is_trimmed_while_it_is_read_is_absent(logs: MemoryLogs, monkeypatch: pytest.MonkeyPatch) -> None:
    log, reader = logs.open(), logs.open()
    publish(log, 0, 1)
    read = logs.wires[1].read

    def trimmed(*arguments: int) -> Any:
        log.trim(WORDS, [])
        return read(*arguments)

    monkeypatch.setattr(logs.wires[1], "read", trimmed)
    assert reader.fetch(WORDS, 0) is None
    assert numbers(reader.fetch(WORDS, 1)) == [1]


def test_records_of_others_in_our_topics_change_nothing(logs: MemoryLogs) -> None:
    log = logs.open()
    for partition in (0, FACTS):
        for key, value in ((b"x", b"y"), (b'["ack"]', b"{}"), (b'["new","words[0]"]', b'{"value":1,"token":"t"}')):
            logs.broker.append(partition, key, value)
    publish(log, 0)
    assert there(log) == [0]
    assert isinstance(logs.open(), KafkaLog)
