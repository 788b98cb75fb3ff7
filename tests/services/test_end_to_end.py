"""The examples of docs/connectors/, run as they are there, with a node killed: read back with other clients."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest
from deltalake import DeltaTable

from tests.pages import example
from tests.services.topics import committed, fill
from understudy.model.report import Report
from understudy.testing.cluster import run
from understudy.testing.services import Kafka, Postgres

pytestmark = [pytest.mark.spark, pytest.mark.timeout(480)]

EPOCHS = 12


def run_with_a_kill(app: Path, home: Path) -> Report:
    report = run(app, home, epochs=EPOCHS, nodes=2, faults=["kill:node-1@epoch4"])
    assert report.failure is None
    assert report.verdict == "exact"
    assert len(report.faults) == 1
    return report


def test_postgres_holds_every_row_once(postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DATABASE", postgres.address)
    run_with_a_kill(example("postgres", tmp_path), tmp_path / "home")
    orders = [(order, order % 7, order * 3 % 1000) for order in range(EPOCHS * 100)]
    with psycopg.connect(postgres.address) as connection:
        large = connection.execute('SELECT "order", shop, cents FROM large_orders ORDER BY "order"').fetchall()
        totals = connection.execute("SELECT shop, cents FROM totals ORDER BY shop").fetchall()
    assert large == [order for order in orders if order[2] >= 500]
    assert totals == [(shop, sum(cents for _, s, cents in orders if s == shop)) for shop in range(7)]


@pytest.fixture(scope="module")
def orders(kafka: Kafka) -> Kafka:
    """The topic `orders` with numbered records, each in the partition of its number."""
    kafka.create_topic("orders", 4)
    for partition in range(4):
        numbers = range(partition, EPOCHS * 100, 4)
        values = [{"id": n, "shop": f"shop {n % 7}", "cents": n * 3 % 1000} for n in numbers]
        fill(kafka, "orders", [(None, json.dumps(value).encode()) for value in values], partition)
    return kafka


def test_kafka_to_kafka_every_record_once(orders: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.create_topic("priced-orders", 3)
    monkeypatch.setenv("SHOP_BROKERS", orders.address)
    run_with_a_kill(example("kafka", tmp_path), tmp_path / "home")
    messages = committed(orders, "priced-orders", range(3))
    found = [(message.key().decode(), json.loads(message.value())) for message in messages]
    assert {key for key, _ in found} == {f"shop {n}" for n in range(7)}
    assert all(key == row["shop"] for key, row in found)
    expected = [
        {
            "id": n,
            "shop": f"shop {n % 7}",
            "kafka_partition": n % 4,
            "kafka_offset": n // 4,
            "euros": (n * 3 % 1000) / 100,
        }
        for n in range(EPOCHS * 100)
    ]
    assert sorted((row for _, row in found), key=lambda row: row["id"]) == expected
    # An epoch takes 25 records of every partition.
    for shop in {row["shop"] for row in expected}:
        epochs = [row["kafka_offset"] // 25 for key, row in found if key == shop]
        assert epochs == sorted(epochs), "the rows of a key are in the order of their epochs"


def test_kafka_to_delta_every_record_once(orders: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_BROKERS", orders.address)
    run_with_a_kill(example("delta", tmp_path), tmp_path / "home")
    table = DeltaTable(tmp_path / "home" / "out" / "large-orders")
    found = sorted(table.to_pyarrow_table().to_pylist(), key=lambda row: row["id"])
    assert found == [
        {"id": n, "shop": f"shop {n % 7}", "cents": n * 3 % 1000} for n in range(EPOCHS * 100) if n * 3 % 1000 >= 500
    ]
    epochs = [one["understudy.epoch"] for one in table.history() if "understudy.epoch" in one]
    assert epochs == list(reversed(range(EPOCHS)))
