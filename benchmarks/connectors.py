"""What an epoch costs in every connector: CPU of this process, and the time until the epoch is delivered or read.

    python benchmarks/connectors.py [--rows 100 10000] [--epochs 10]

Starts Kafka and PostgreSQL on this machine (docs/services.md); their CPU is not counted. Rows have a number, a word and
a float; tables lie on the local disk.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import understudy as us
from understudy.sinks import Sink
from understudy.testing import services

PARTITIONS = 4


def rows(epoch: int, count: int) -> pa.Table:
    numbers = np.arange(epoch * count, (epoch + 1) * count)
    words = pa.array(numbers % 1000).cast(pa.string())
    return pa.table({"id": numbers, "word": words, "value": numbers * 0.5})


def measured(name: str, count: int, epochs: int, work: Callable[[int], object]) -> None:
    """Prints the mean of the epochs after the first, which makes tables and connections."""
    work(0)
    cpu, wall = time.process_time(), time.perf_counter()
    for epoch in range(1, epochs + 1):
        work(epoch)
    cpu, wall = (
        (now - then) / epochs * 1000 for now, then in ((time.process_time(), cpu), (time.perf_counter(), wall))
    )
    print(f"{name:16s} {count:7d} rows an epoch {cpu:8.1f} ms CPU {wall:8.1f} ms", flush=True)


def write(name: str, sink: Sink, home: Path, count: int, epochs: int) -> None:
    made = [rows(epoch, count) for epoch in range(epochs + 1)]
    writer = sink.open(name.replace(" ", "-"), home, "benchmark")
    measured(name, count, epochs, lambda epoch: writer.write(epoch, made[epoch]))
    writer.close()


def tables(home: Path, count: int, epochs: int) -> None:
    catalog = {"type": "sql", "uri": f"sqlite:///{home}/{count}.db", "warehouse": f"file://{home}/warehouse-{count}"}
    write("delta", us.sinks.Delta(home / f"delta-{count}"), home, count, epochs)
    write("iceberg", us.sinks.Iceberg("shop.rows", properties=catalog), home, count, epochs)


def postgres(server: services.Postgres, home: Path, count: int, epochs: int) -> None:
    write("postgres append", us.sinks.Postgres(server.address, f"appended_{count}"), home, count, epochs)
    upserted = us.sinks.Postgres(server.address, f"upserted_{count}", mode="upsert", key="word")
    write("postgres upsert", upserted, home, count, epochs)


def kafka(server: services.Kafka, home: Path, count: int, epochs: int) -> None:
    topic = f"rows-{count}"
    server.create_topic(topic, PARTITIONS)
    write("kafka sink", us.sinks.Kafka(server.address, topic, key="word"), home, count, epochs)
    # What the sink has written, one epoch's worth at a time in front of all that waits.
    source = us.sources.Kafka(server.address, topic, "id long, word string, value double", max_rows=count)
    reader, position = source.open(0, 1, 1.0), None

    def read(epoch: int) -> None:
        nonlocal position
        start, position = position, reader.cut(epoch, position)
        assert reader.read(epoch, start, position).num_rows > 0

    measured("kafka source", count, epochs, read)
    reader.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 10_000])
    parser.add_argument("--epochs", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, services.Postgres() as database, services.Kafka() as brokers:
        for count in arguments.rows:
            tables(Path(directory), count, arguments.epochs)
            postgres(database, Path(directory), count, arguments.epochs)
            kafka(brokers, Path(directory), count, arguments.epochs)


if __name__ == "__main__":
    main()
