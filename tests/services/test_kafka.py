"""Kafka keeps what it acknowledged, and hands out what was committed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from understudy.testing.services import Kafka

PATIENCE_S = 120.0


def _producer(kafka: Kafka, **settings: Any) -> Any:
    from confluent_kafka import Producer

    return Producer({"bootstrap.servers": kafka.address, "acks": "all", "linger.ms": 0, "log_level": 0, **settings})


def _produce(producer: Any, topic: str, values: list[bytes]) -> None:
    failures: list[object] = []
    report: Callable[..., None] = lambda error, _: failures.append(error) if error else None  # noqa: E731
    for value in values:
        producer.produce(topic, value, on_delivery=report)
    assert producer.flush(PATIENCE_S) == 0
    assert failures == []


def _consume(kafka: Kafka, topic: str, count: int) -> list[bytes]:
    """The first values of a topic of one partition."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": kafka.address, "group.id": topic, "isolation.level": "read_committed"}
    consumer = Consumer(settings | {"enable.auto.commit": False, "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        return [_value(consumer.poll(PATIENCE_S)) for _ in range(count)]
    finally:
        consumer.close()


def _value(message: Any) -> bytes:
    assert message is not None, "nothing came"
    assert message.error() is None
    value: bytes = message.value()
    return value


def test_readers_see_committed_transactions_only(kafka: Kafka) -> None:
    kafka.create_topic("committed-orders")
    producer = _producer(kafka, **{"transactional.id": "committed-orders"})
    producer.init_transactions(PATIENCE_S)
    for value, end in ((b"kept", "commit"), (b"dropped", "abort"), (b"also kept", "commit")):
        producer.begin_transaction()
        _produce(producer, "committed-orders", [value])
        getattr(producer, f"{end}_transaction")(PATIENCE_S)
    assert _consume(kafka, "committed-orders", 2) == [b"kept", b"also kept"]


def test_a_producer_is_fenced_by_its_successor(kafka: Kafka) -> None:
    from confluent_kafka import KafkaException

    kafka.create_topic("fenced")
    old, new = (_producer(kafka, **{"transactional.id": "fenced"}) for _ in range(2))
    old.init_transactions(PATIENCE_S)
    new.init_transactions(PATIENCE_S)
    old.begin_transaction()
    old.produce("fenced", b"late")
    with pytest.raises(KafkaException) as refused:
        old.commit_transaction(PATIENCE_S)
    assert refused.value.args[0].fatal()


def test_what_was_acknowledged_survives_a_kill(kafka: Kafka) -> None:
    kafka.create_topic("kept")
    _produce(_producer(kafka), "kept", [b"one", b"two"])
    address = kafka.address
    kafka.kill()
    assert kafka.restart() == address
    _produce(_producer(kafka), "kept", [b"three"])
    assert _consume(kafka, "kept", 3) == [b"one", b"two", b"three"]


def test_three_brokers_go_on_without_one(kafka_three: Kafka) -> None:
    kafka_three.create_topic("copied")
    producer = _producer(kafka_three)
    _produce(producer, "copied", [b"before"])
    kafka_three.brokers[0].kill()
    _produce(producer, "copied", [b"meanwhile"])
    kafka_three.brokers[0].restart()
    _produce(producer, "copied", [b"after"])
    assert _consume(kafka_three, "copied", 3) == [b"before", b"meanwhile", b"after"]
