"""A topic is read whole and in ranges that never change: transactions, compaction, retention, new partitions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.services.topics import PATIENCE_S, committed, fill, producer
from tests.sites import a_context, deployed, run_until
from understudy.clients.kafka import OffsetsGone
from understudy.errors import InvalidInput
from understudy.model.names import SliceId
from understudy.model.topology import Topology
from understudy.sinks import JsonLines
from understudy.sources.interface import SourceReader
from understudy.sources.kafka import Kafka as Source
from understudy.sources.kafka import KafkaReader
from understudy.stream.source import SourceReplica
from understudy.testing.services import Kafka


def numbered(*numbers: int) -> list[tuple[bytes | None, bytes | None]]:
    return [(str(n).encode(), json.dumps({"n": n}).encode()) for n in numbers]


def source(kafka: Kafka, topic: str, schema: str = "n long", **options: Any) -> Source:
    return Source(kafka.address, topic, schema, **options)


def column(reader: SourceReader, position: Any, name: str = "n") -> list[Any]:
    values: list[Any] = reader.read(0, None, position).column(name).to_pylist()
    return values


def opened(kafka: Kafka, topic: str, schema: str = "n long", **options: Any) -> SourceReader:
    return source(kafka, topic, schema, **options).open(0, 1, 1.0)


def test_slices_share_partitions_and_read_the_same_again(kafka: Kafka) -> None:
    kafka.create_topic("shared", 3)
    for partition in range(3):
        fill(kafka, "shared", numbered(*range(partition * 10, partition * 10 + 10)), partition)
    slices = [source(kafka, "shared", max_rows=12).open(index, 2, 1.0) for index in range(2)]
    first = slices[0].cut(0, None)
    second = slices[1].cut(1, first)
    third = slices[0].cut(2, second)
    assert [sum(one["to"].values()) for one in (first, second, third)] == [12, 24, 30]
    found = [n for position in (third, first, second) for one in slices for n in column(one, position)]
    assert sorted(found) == list(range(30))
    for position in (second, first):
        assert [column(one, position) for one in slices] == [column(one, position) for one in slices]
    assert {n // 10 % 2 for n in column(slices[1], first)} == {1}, "the second slice reads partition 1 alone"
    assert slices[0].cut(3, third)["from"] == slices[0].cut(3, third)["to"] == third["to"]


def test_new_partitions_are_read_from_their_beginning(kafka: Kafka) -> None:
    admin: Any = import_module("confluent_kafka.admin")
    kafka.create_topic("growing", 1)
    fill(kafka, "growing", numbered(1))
    reader = opened(kafka, "growing", start="latest")
    first = reader.cut(0, None)
    assert column(reader, first) == []
    client = admin.AdminClient({"bootstrap.servers": kafka.address})
    client.create_partitions([admin.NewPartitions("growing", 2)])["growing"].result(PATIENCE_S)
    fill(kafka, "growing", numbered(2), partition=1)
    fill(kafka, "growing", numbered(3))
    second = reader.cut(1, first)
    while second["to"] != {"0": 2, "1": 1}:
        second = reader.cut(1, first)
    assert column(reader, second) == [3, 2]
    assert opened(kafka, "growing").read(1, first, second).column("n").to_pylist() == [3, 2]


def test_only_committed_records_and_never_beyond_an_open_transaction(kafka: Kafka) -> None:
    kafka.create_topic("transactions")
    reader = opened(kafka, "transactions")
    positions = [reader.cut(0, None)]
    client = producer(kafka, **{"transactional.id": "transactions"})
    client.init_transactions(PATIENCE_S)
    for number, end in enumerate(["commit", "abort", "commit"]):
        client.begin_transaction()
        client.produce("transactions", json.dumps({"n": number}).encode())
        client.flush(PATIENCE_S)
        positions.append(reader.cut(0, positions[-1]))
        assert column(reader, positions[-1]) == ([] if number != 1 and number != 2 else [0] if number == 1 else [])
        getattr(client, f"{end}_transaction")(PATIENCE_S)
    positions.append(reader.cut(0, positions[-1]))
    while positions[-1]["to"] != {"0": 6}:
        # A commit is answered before its marker is in the partition.
        positions.append(reader.cut(0, positions[-1]))
    again = opened(kafka, "transactions")
    assert [n for position in positions for n in column(again, position)] == [0, 2]


def test_what_kafka_says_of_a_record_and_tombstones(kafka: Kafka) -> None:
    kafka.create_topic("told")
    fill(kafka, "told", [(b"k", b'{"n":1}'), (b"k", None)], timestamp=1000, headers=[("h", b"x")])
    schema = "n long, kafka_key string, kafka_offset long, kafka_timestamp timestamp, kafka_headers map<string,string>"
    reader = opened(kafka, "told", schema)
    rows = reader.read(0, None, reader.cut(0, None)).to_pylist()
    assert [(row["n"], row["kafka_key"], row["kafka_offset"]) for row in rows] == [(1, "k", 0), (None, "k", 1)]
    assert {(row["kafka_timestamp"].timestamp(), *row["kafka_headers"]) for row in rows} == {(1.0, ("h", "x"))}


def test_the_first_epoch_begins_where_it_should(kafka: Kafka) -> None:
    kafka.create_topic("begin")
    for number in range(4):
        fill(kafka, "begin", numbered(number), timestamp=1000 * (1 + number))
    starts = {"earliest": [0, 1, 2, 3], "latest": [], "1970-01-01T00:00:02.500": [2, 3], "2100-01-01": []}
    for start, expected in starts.items():
        reader = opened(kafka, "begin", start=start)
        assert column(reader, reader.cut(0, None)) == expected, start


def test_rows_are_sorted_by_event_time(kafka: Kafka) -> None:
    kafka.create_topic("sorted", 2)
    fill(kafka, "sorted", numbered(5, 1), 0)
    fill(kafka, "sorted", numbered(3, 2), 1)
    reader = opened(kafka, "sorted", event_time="n")
    assert column(reader, reader.cut(0, None)) == [1, 2, 3, 5]


def test_offsets_that_are_gone_are_named_and_never_skipped(kafka: Kafka) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    kafka.create_topic("gone")
    fill(kafka, "gone", numbered(*range(10)))
    reader = opened(kafka, "gone", max_rows=4)
    first = reader.cut(0, None)
    second = reader.cut(1, first)
    admin: Any = AdminClient({"bootstrap.servers": kafka.address})
    for future in admin.delete_records([TopicPartition("gone", 0, 6)]).values():
        future.result(PATIENCE_S)
    with pytest.raises(OffsetsGone, match="offsets 0 to 3 of partition 0"):
        reader.read(0, None, first)
    with pytest.raises(OffsetsGone, match="offsets 4 to 5 of partition 0"):
        reader.read(1, first, second)
    third = reader.cut(2, second)
    assert column(reader, third) == [8, 9]


def test_a_topic_that_was_made_anew_is_noticed(kafka: Kafka) -> None:
    from confluent_kafka.admin import AdminClient

    kafka.create_topic("anew")
    fill(kafka, "anew", numbered(1, 2, 3))
    position = opened(kafka, "anew").cut(0, None)
    admin = AdminClient({"bootstrap.servers": kafka.address})
    admin.delete_topics(["anew"])["anew"].result(PATIENCE_S)
    kafka.create_topic("anew")
    with pytest.raises(OffsetsGone, match="offsets 3 to 3 of partition 0"):
        opened(kafka, "anew").cut(1, position)


def test_compacted_records_are_no_gap(kafka: Kafka) -> None:
    """Aborted records stand for compacted ones: offsets in the middle and at the end that hold nothing to read."""
    kafka.create_topic("holes")
    client = producer(kafka, **{"transactional.id": "holes"})
    client.init_transactions(PATIENCE_S)
    for number, end in enumerate(["abort", "commit", "abort"]):
        client.begin_transaction()
        client.produce("holes", json.dumps({"n": number}).encode())
        client.flush(PATIENCE_S)
        getattr(client, f"{end}_transaction")(PATIENCE_S)
    reader = opened(kafka, "holes", max_rows=2)
    position, found = reader.cut(0, None), []
    while position["to"] != {"0": 6}:
        found += column(reader, position)
        position = reader.cut(1, position)
    assert found + column(reader, position) == [1]


BAD = [(b"a", b'{"n":1}'), (b"b", b"no"), (b"c", b'{"n":2}')]


def test_bad_records_end_the_run_or_are_dropped_or_go_elsewhere(kafka: Kafka) -> None:
    for topic in ("bad", "letters"):
        kafka.create_topic(topic)
    fill(kafka, "bad", BAD, headers=[("h", b"x")])
    strict = opened(kafka, "bad")
    position = strict.cut(0, None)
    with pytest.raises(InvalidInput, match="topic 'bad', partition 0, offset 1 cannot be read as json"):
        strict.read(0, None, position)
    lenient = opened(kafka, "bad", bad="drop")
    assert isinstance(lenient, KafkaReader)
    assert column(lenient, position) == [1, 2]
    assert lenient.dropped == 1
    assert column(opened(kafka, "bad", bad="to:letters"), position) == [1, 2]
    (letter,) = committed(kafka, "letters")
    assert (letter.key(), letter.value()) == (b"b", b"no")
    said = dict(letter.headers())
    assert said.pop("understudy-reason")
    origin = {"understudy-topic": b"bad", "understudy-partition": b"0", "understudy-offset": b"1"}
    assert said == {"h": b"x"} | origin
    with pytest.raises(InvalidInput, match="there is no topic 'nowhere'"):
        opened(kafka, "bad", bad="to:nowhere")


def test_a_restarted_broker_is_waited_for(kafka: Kafka) -> None:
    kafka.create_topic("back")
    fill(kafka, "back", numbered(1, 2))
    reader = opened(kafka, "back")
    position = reader.cut(0, None)
    kafka.kill()
    kafka.restart()
    assert column(reader, position) == [1, 2]
    assert reader.cut(1, position)["to"] == position["to"]


def test_a_replica_that_returns_makes_the_same_epochs(kafka: Kafka, tmp_path: Path) -> None:
    """Slices are stopped and started again, out of step, over the recorded cuts."""
    kafka.create_topic("epochs", 4)
    for partition in range(4):
        fill(kafka, "epochs", numbered(*range(partition * 25, partition * 25 + 25)), partition)
    app = Topology("epochs")
    app.sink("out", app.source("rows", source(kafka, "epochs", max_rows=9), slices=2), JsonLines("out"))
    site = a_context(tmp_path, app, epochs=20)
    goals: Sequence[tuple[int, int]] = ((0, 3), (1, 7), (0, 12), (1, 14), (0, 14))
    for generation, (index, goal) in enumerate(goals, 1):
        name = SliceId("rows", index)
        replica = SourceReplica(site, deployed(name, generation))
        run_until(replica, lambda name=name, goal=goal: site.log.newest(name) >= goal)  # type: ignore[misc]
    found: list[int] = []
    for epoch in range(15):
        for index in range(2):
            stored = site.log.fetch(SliceId("rows", index), epoch)
            assert stored is not None
            (channel,) = [one for one in site.layout.channels(SliceId("out", 0)) if one.upstream.index == index]
            found += stored.rows(channel, app.sources[0].source.schema).column("n").to_pylist()
    assert sorted(found) == list(range(100))
