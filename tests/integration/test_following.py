"""A waiting query that jumps to newer checkpoints, its state following in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.apps import kinds

from understudy.log import bag
from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.model.layout import Channel, Split
from understudy.model.names import SliceId
from understudy.model.schema import conform, parse
from understudy.stream import frames
from understudy.stream.checkpoint import committed, forget_last_commit, last_batch
from understudy.stream.shipping import Shipped, Store

pytestmark = pytest.mark.spark

ROWS = SliceId("rows", 0)
SCHEMA = parse(kinds.SCHEMA)


class Half:
    """One of two queries that read the same epochs; what each batch gave is kept."""

    def __init__(self, spark: SparkSession, name: str, folder: Path, inputs: int) -> None:
        self.spark, self.name, self.inputs = spark, name, inputs
        self.directory = folder / name
        self.gate = frames.gate(spark, name)
        self.batches: dict[int, list[dict[str, Any]]] = {}
        self._arrived = threading.Condition()

    def start(self, build: Callable[..., DataFrame], mode: Any) -> None:
        streams = frames.inputs(self.spark, self.name, [SCHEMA] * self.inputs)
        self.query = frames.start(build(*streams), self.name, mode, self.directory, self._batch)
        self.gate.attach(self.query._jsq)

    def _batch(self, frame: DataFrame, _: int) -> None:
        with self._arrived:
            rows = frame.toArrow().to_pylist()
            self.batches[int(self.gate.planned())] = sorted(rows, key=str)
            self._arrived.notify_all()

    def feed(self, log: FileLog, epoch: int) -> list[dict[str, Any]]:
        stored = log.fetch(ROWS, epoch)
        assert stored is not None
        lines = [line for number in range(self.inputs) for line in stored.lines(Channel(number, ROWS, Split(), 0))]
        self.gate.announce(epoch, "\n".join(lines))
        with self._arrived:
            assert self._arrived.wait_for(lambda: epoch in self.batches or self.query.exception(), 120)
        assert self.query.exception() is None, self.query.exception()
        assert self.gate.awaitCommitted(epoch, 120_000) == epoch
        return self.batches[epoch]

    def stop(self) -> None:
        self.query.stop()
        frames.remove_gate(self.spark, self.name)

    def counts(self, rows: int) -> bool:
        """Whether the state comes to have so many rows: it is counted some time after it is asked for."""
        deadline = time.monotonic() + 120
        while self.gate.stateRows() != rows and time.monotonic() < deadline:
            time.sleep(0.02)
        return bool(self.gate.stateRows() == rows)


def test_rows_of_the_state_are_counted_not_updates(spark: SparkSession, tmp_path: Path) -> None:
    log, half = FileLog(tmp_path / "log", Disk()), Half(spark, "counted", tmp_path, 1)
    keys: set[Any] = set()
    half.start(kinds.totals.function, kinds.totals.output_mode)
    for epoch in range(6):
        rows = conform(kinds.make(epoch, 0, 60, np.random.default_rng(epoch)), SCHEMA)
        log.publish(bag.make(ROWS, epoch, rows, ()), durable=False)
        keys |= {row["user"] for row in half.feed(log, epoch)}
        assert half.counts(len(keys))
    half.stop()


def test_a_query_that_started_with_nothing_is_moved_when_it_has_come_to_its_gate(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Before, Spark would find state in the directory of a query that has not run, and end it."""
    log, store = FileLog(tmp_path / "log", Disk()), Store(tmp_path / "shipped", SliceId("totals", 0), Disk())
    primary, standby = (Half(spark, f"early-{role}", tmp_path, 1) for role in "ab")
    primary.start(kinds.totals.function, kinds.totals.output_mode)
    for epoch in range(4):
        rows = conform(kinds.make(epoch, 0, 60, np.random.default_rng(epoch)), SCHEMA)
        log.publish(bag.make(ROWS, epoch, rows, ()), durable=False)
    for epoch in range(3):
        primary.feed(log, epoch)
    store.ship(committed(primary.directory), 2, 1, Shipped())
    assert not standby.gate.arrived()
    standby.start(kinds.totals.function, kinds.totals.output_mode)
    deadline = time.monotonic() + 120
    while not standby.gate.arrived():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    pulled = store.pull(standby.directory, Shipped(), -1)
    assert pulled is not None
    assert standby.gate.jump(last_batch(pulled[0]), False, 60_000)
    assert standby.feed(log, 3) == primary.feed(log, 3)
    primary.stop()
    standby.stop()


@pytest.mark.parametrize("operator", [kinds.totals, kinds.windows, kinds.joined, kinds.running], ids=lambda o: o.name)
def test_a_standby_follows_and_goes_on_as_the_primary_would(spark: SparkSession, tmp_path: Path, operator: Any) -> None:
    log = FileLog(tmp_path / "log", Disk())
    for epoch in range(40):
        rows = conform(kinds.make(epoch, 0, 60, np.random.default_rng(epoch)), SCHEMA)
        log.publish(bag.make(ROWS, epoch, rows, ()), durable=False)
    store = Store(tmp_path / "shipped", SliceId(operator.name, 0), Disk())
    primary, standby = (Half(spark, f"{operator.name}-{role}", tmp_path, len(operator.inputs)) for role in "ab")
    shipped, held = Shipped(), Shipped()

    def work_to(epoch: int) -> None:
        for number in range(max(primary.batches, default=-1) + 1, epoch + 1):
            primary.feed(log, number)
        checkpoint = committed(primary.directory)
        assert checkpoint is not None
        assert checkpoint.epoch == epoch
        store.ship(checkpoint, epoch, 1, shipped)
        store.recycle(released=10**9)

    primary.start(operator.function, operator.output_mode)
    work_to(3)
    _, held = store.restore(standby.directory, None)
    assert forget_last_commit(standby.directory) == 3
    standby.start(operator.function, operator.output_mode)
    assert standby.feed(log, 3) == primary.batches[3]
    loaded = []
    for epoch in (4, 5, 9, 10, 14, 20):
        work_to(epoch)
        pulled = store.pull(standby.directory, held, epoch - 1)
        assert pulled is not None
        assert standby.gate.jump(last_batch(pulled[0]), True, 60_000)
        loaded.append(standby.gate.loaded())
    assert all(loaded), loaded
    for epoch in range(21, 27):
        assert standby.feed(log, epoch) == primary.feed(log, epoch)

    read_back(log, store, primary, standby, (shipped, held))
    primary.stop()
    standby.stop()


def read_back(log: FileLog, store: Store, primary: Half, standby: Half, known: tuple[Shipped, Shipped]) -> None:
    """The primary stands still while its standby works and ships; then it takes over what it has missed."""
    shipped, held = known
    for epoch in range(27, 34):
        standby.feed(log, epoch)
    checkpoint = committed(standby.directory)
    assert checkpoint is not None
    store.ship(checkpoint, 33, 2, held)
    pulled = store.pull(primary.directory, shipped, 26)
    assert pulled is not None
    assert primary.gate.jump(last_batch(pulled[0]), True, 60_000)
    for epoch in range(34, 40):
        assert primary.feed(log, epoch) == standby.feed(log, epoch)
    assert not set(primary.batches) & set(range(27, 34)), "none of it was done twice"
