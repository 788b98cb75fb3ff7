"""The log in Kafka, with real brokers: the promises of every log, and brokers that are killed."""

from __future__ import annotations

import json
import logging
import multiprocessing
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from tests.builders import COUNTS, WORDS, a_bag, rows_of
from tests.log_contract import PATIENCE_S, SLICES, LogContract, eventually, numbers, publish, there
from understudy.clients.kafka import Cluster
from understudy.log.disk import Disk
from understudy.log.interface import Fenced, Log
from understudy.log.place import LogPlace
from understudy.log.registry import open_log
from understudy.model.config import LogSection
from understudy.model.names import SliceId
from understudy.testing.services import Kafka

WRITERS, EPOCHS = 3, 8


class KafkaLogs:
    """A run of its own on the brokers; every log is another node. Small records, so that bags have several."""

    def __init__(self, kafka: Kafka, directory: Path) -> None:
        self.url = f"kafka://{kafka.address}/contract?record_bytes=100000"
        self._brokers, self._directory, self._run = kafka.address, directory, secrets.token_hex(4)
        self._opened: list[Log] = []

    def place(self) -> LogPlace:
        number = len(list(self._directory.iterdir()))
        local = self._directory / str(number)
        local.mkdir()
        return LogPlace(LogSection(url=self.url), self._directory / "home", local, self._run, SLICES, Disk())

    def open(self) -> Log:
        self._opened.append(open_log(self.place()))
        return self._opened[-1]

    def beginning(self, slice_id: SliceId) -> int:
        """The first offset of the slice's partition that the brokers still have."""
        cluster = Cluster(self._brokers, {}, "a test")
        topic, partition = f"contract.{self._run}.bags", SLICES.index(slice_id)
        try:
            return cluster.beginnings(topic, [partition])[partition]
        finally:
            cluster.close()

    def close(self) -> None:
        for log in self._opened:
            log.close()


@pytest.fixture
def logs(kafka: Kafka, tmp_path: Path) -> Iterator[KafkaLogs]:
    made = KafkaLogs(kafka, tmp_path)
    yield made
    made.close()


class TestKafkaLog(LogContract):
    pass


def race(place: LogPlace, writer: int, start: Barrier, answer: Path) -> None:
    """Publishes rows of its own for every epoch, and tells who won."""
    log = open_log(place)
    told = []
    start.wait(PATIENCE_S)
    for epoch in range(EPOCHS):
        first = log.publish(a_bag(epoch, rows_of(*[writer] * 20_000)), durable=False).first
        rows = set(numbers(log.fetch(WORDS, epoch)))
        told.append((first, sorted(rows), log.record(WORDS, epoch, writer)))
    log.close()
    answer.write_text(json.dumps(told))


def test_of_writers_in_several_processes_one_wins_and_all_learn_who(logs: KafkaLogs, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(WRITERS)
    answers = [tmp_path / f"answer-{writer}" for writer in range(WRITERS)]
    children = [
        context.Process(target=race, args=(logs.place(), writer, start, answers[writer])) for writer in range(WRITERS)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(PATIENCE_S)
        assert child.exitcode == 0
    log = logs.open()
    for epoch, told in enumerate(zip(*(json.loads(answer.read_text()) for answer in answers), strict=True)):
        winner = next(writer for writer, (first, _, _) in enumerate(told) if first)
        assert sum(first for first, _, _ in told) == 1
        assert all(rows == [winner] for _, rows, _ in told)
        assert {cut for _, _, cut in told} == {log.recorded(WORDS, epoch)}


def test_a_broker_that_is_killed_stalls_the_log_and_loses_nothing(kafka: Kafka, logs: KafkaLogs) -> None:
    log, reader = logs.open(), logs.open()
    assert not reader.await_bags([WORDS], 4, 0.0)
    publish(log, *range(5))
    assert reader.await_bags([WORDS], 4, PATIENCE_S)
    kafka.kill()
    reader.acknowledge(COUNTS, WORDS, 1)
    with ThreadPoolExecutor(2) as pool:
        publishing, recording = pool.submit(publish, log, 5, 6), pool.submit(reader.record, WORDS, 0, "cut")
        assert not reader.await_bags([WORDS], 5, 0.5)
        assert [numbers(reader.fetch(WORDS, epoch)) for epoch in range(5)] == [[epoch] for epoch in range(5)]
        assert not publishing.done()
        kafka.restart()
        publishing.result(PATIENCE_S)
        assert recording.result(PATIENCE_S) == "cut"
    assert reader.await_bags([WORDS], 6, PATIENCE_S)
    assert eventually(lambda: log.acknowledged(COUNTS, WORDS) == 1)
    assert log.trim(WORDS, [COUNTS]) == 1
    late = logs.open()
    assert there(late) == [2, 3, 4, 5, 6]
    assert [numbers(late.fetch(WORDS, epoch)) for epoch in range(2, 7)] == [[epoch] for epoch in range(2, 7)]


def test_with_three_brokers_one_may_die_at_any_time(kafka_three: Kafka, tmp_path: Path) -> None:
    logs = KafkaLogs(kafka_three, tmp_path)
    log, reader = logs.open(), logs.open()
    victims = iter(kafka_three.brokers)
    for epoch in range(9):
        if epoch % 3 == 1:
            victim = next(victims)
            victim.kill()
        made = a_bag(epoch, rows_of(*range(20_000)))
        assert log.publish(made, durable=True).first
        assert log.record(WORDS, epoch, epoch) == epoch
        assert reader.await_bags([WORDS], epoch, PATIENCE_S)
        reader.acknowledge(COUNTS, WORDS, epoch)
        if epoch % 3 == 2:
            victim.restart()
    assert eventually(lambda: log.acknowledged(COUNTS, WORDS) == 8)
    assert log.trim(WORDS, [COUNTS]) == 7
    assert eventually(lambda: there(reader) == [8])
    assert numbers(logs.open().fetch(WORDS, 8)) == list(range(20_000))
    logs.close()


def test_a_reader_that_was_away_while_the_log_was_trimmed_goes_on(
    logs: KafkaLogs, caplog: pytest.LogCaptureFixture
) -> None:
    """Its next record is gone: it begins where the partition begins now, and knows the fences before that."""
    from confluent_kafka import TopicPartition

    log, away = logs.open(), logs.open()
    publish(log, 0, 1)
    assert away.await_bags([WORDS], 1, PATIENCE_S)
    follower: Any = away._wire._follower  # type: ignore[attr-defined]
    own = [TopicPartition(follower._bags, SLICES.index(WORDS))]
    follower._consumer.pause(own)
    log.fence(WORDS, 3)
    for epoch in range(2, 6):
        log.publish(a_bag(epoch), durable=False, generation=3)
    assert log.trim(WORDS, []) == 4
    assert away.newest(WORDS) == 1
    # Brokers remove records in their own time.
    assert eventually(lambda: logs.beginning(WORDS) > 2)
    with caplog.at_level(logging.INFO):
        follower._consumer.resume(own)
        assert away.await_bags([WORDS], 5, PATIENCE_S)
    assert "was trimmed while it was not read" in caplog.text
    assert away.fenced(WORDS) == 3
    publish(log, 6)
    assert away.await_bags([WORDS], 6, PATIENCE_S)
    with pytest.raises(Fenced):
        away.publish(a_bag(7), durable=False, generation=2)
