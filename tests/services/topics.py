"""Topics filled and read with plain clients: what tests compare the connectors with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from understudy.testing.services import Kafka

PATIENCE_S = 120.0
Record = tuple[bytes | None, bytes | None]
"""Key and value."""


def producer(kafka: Kafka, **settings: Any) -> Any:
    from confluent_kafka import Producer

    return Producer({"bootstrap.servers": kafka.address, "log_level": 0, **settings})


def fill(kafka: Kafka, topic: str, records: Iterable[Record], partition: int = 0, **more: Any) -> None:
    failures: list[object] = []
    client = producer(kafka)
    for key, value in records:
        report: Any = lambda error, _: failures.append(error) if error else None  # noqa: E731
        client.produce(topic, value, key, partition=partition, on_delivery=report, **more)
    assert client.flush(PATIENCE_S) == 0
    assert failures == []


def committed(kafka: Kafka, topic: str, partitions: Sequence[int] = (0,)) -> list[Any]:
    """Every committed record up to the end that the topic has now, partition by partition."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    settings = {"bootstrap.servers": kafka.address, "group.id": topic, "isolation.level": "read_committed"}
    client = Consumer(settings | {"enable.auto.commit": False, "enable.partition.eof": True, "log_level": 0})
    client.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found: dict[int, list[Any]] = {partition: [] for partition in partitions}
    left = set(partitions)
    try:
        while left:
            message: Any = client.poll(PATIENCE_S)
            assert message is not None, "nothing came"
            if message.error() is None:
                found[message.partition()].append(message)
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                _, high = client.get_watermark_offsets(TopicPartition(topic, message.partition()), PATIENCE_S)
                # An open transaction holds readers back: then the end comes again later.
                if message.offset() >= high:
                    left.discard(message.partition())
    finally:
        client.close()
    return [message for partition in partitions for message in found[partition]]
