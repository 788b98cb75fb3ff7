"""A waiting query that jumps to newer checkpoints, its state following in memory and its watermarks with it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.apps import clocks, kinds

from understudy.checkpoints.file_store import Store
from understudy.checkpoints.interface import Checkpoint, Marker, Shipped
from understudy.checkpoints.spark_files import committed, forget_last_commit
from understudy.errors import Unavailable
from understudy.log import bag
from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.model.layout import Channel, Split
from understudy.model.names import SliceId
from understudy.model.schema import parse
from understudy.model.topology import Operator, Topology
from understudy.sources import Generator
from understudy.stream.gated_query import GatedQuery, QueryPlan

pytestmark = pytest.mark.spark

SCHEMA = parse(kinds.SCHEMA)
EPOCHS, ROWS = 40, 60


class Rows:
    """The inputs of an operator, published epoch by epoch: what its sources make, sixty rows at most."""

    def __init__(self, folder: Path, topology: Topology, operator: Operator) -> None:
        self.log = FileLog(folder / "log", Disk())
        self.slices = [SliceId(name, 0) for name in operator.inputs]
        for slice_id in self.slices:
            source = topology.streams[slice_id.operator].source  # type: ignore[union-attr]
            for epoch in range(EPOCHS):
                self.log.publish(bag.make(slice_id, epoch, made(source, epoch), ()), durable=False)

    def lines(self, epoch: int) -> list[str]:
        found = [(number, name, self.log.fetch(name, epoch)) for number, name in enumerate(self.slices)]
        return [line for number, name, bag in found if bag for line in bag.lines(Channel(number, name, Split(), 0))]


def made(source: Generator, epoch: int) -> pa.Table:
    assert isinstance(source.rate, float | int)
    return source.open(0, 1, ROWS / source.rate).read(epoch, None, None)


class Half:
    """One of two queries that read the same epochs; what each batch gave is kept."""

    def __init__(self, spark: SparkSession, name: str, folder: Path, operator: Operator) -> None:
        plan = QueryPlan((operator,), (SCHEMA,) * len(operator.inputs))
        self.query = GatedQuery(spark, plan, name, folder / name, self._batch, self._ended)
        self.directory = self.query.directory
        self.batches: dict[int, list[dict[str, Any]]] = {}
        self._arrived = threading.Condition()
        self._error: BaseException | None = None

    def start(self, restored: Marker | None = None) -> None:
        start = 0 if restored is None else restored.epoch + 1
        self.query.start(start, restored)

    def _batch(self, epoch: int, rows: pa.Table) -> None:
        with self._arrived:
            self.batches[epoch] = sorted(rows.to_pylist(), key=str)
            self._arrived.notify_all()

    def _ended(self, error: BaseException | None) -> None:
        with self._arrived:
            self._error = error or AssertionError("the query ended by itself")
            self._arrived.notify_all()

    def feed(self, rows: Rows, epoch: int) -> list[dict[str, Any]]:
        self.query.announce(epoch, rows.lines(epoch))
        with self._arrived:
            assert self._arrived.wait_for(lambda: epoch in self.batches or self._error, 120)
        assert self._error is None, self._error
        assert self.query.await_committed(epoch, 120_000)
        return self.batches[epoch]

    def jump(self, marker: Marker, *, keep_state: bool) -> None:
        """However busy the machine is."""
        deadline = time.monotonic() + 120
        while not self.query.jump(marker, keep_state=keep_state):
            assert time.monotonic() < deadline

    def checkpoint(self, epoch: int) -> Checkpoint:
        """As the shipper takes it."""
        found = committed(self.directory)
        assert found is not None
        assert found.epoch == epoch
        return replace(found, watermarks=self.query.watermarks(epoch))

    def counts(self, rows: int) -> bool:
        """Whether the state comes to have so many rows: it is counted some time after it is asked for."""
        deadline = time.monotonic() + 120
        while self.query.state_rows != rows and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.query.state_rows == rows


def test_rows_of_the_state_are_counted_not_updates(spark: SparkSession, tmp_path: Path) -> None:
    rows, half = Rows(tmp_path, kinds.app, kinds.totals), Half(spark, "counted", tmp_path, kinds.totals)
    keys: set[Any] = set()
    half.start()
    for epoch in range(6):
        keys |= {row["user"] for row in half.feed(rows, epoch)}
        assert half.counts(len(keys))
    half.query.stop()


def test_a_query_that_started_with_nothing_is_moved_when_it_has_come_to_its_gate(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Before, Spark would find state in the directory of a query that has not run, and end it."""
    rows = Rows(tmp_path, kinds.app, kinds.totals)
    store = Store(tmp_path / "shipped", SliceId("totals", 0), Disk())
    primary, standby = (Half(spark, f"early-{role}", tmp_path, kinds.totals) for role in "ab")
    primary.start()
    for epoch in range(3):
        primary.feed(rows, epoch)
    store.ship(primary.checkpoint(2), 2, 1, Shipped())
    assert not standby.query.arrived
    standby.start()
    deadline = time.monotonic() + 120
    while not standby.query.arrived:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    pulled = store.pull(standby.directory, Shipped(), -1)
    assert pulled is not None
    standby.jump(pulled[0], keep_state=False)
    assert standby.feed(rows, 3) == primary.feed(rows, 3)
    primary.query.stop()
    standby.query.stop()


OPERATORS = {
    "totals": (kinds.app, kinds.totals),
    "windows": (kinds.app, kinds.windows),
    "running": (kinds.app, kinds.running),
    # Their sparse input is silent before the first checkpoint.
    "two watermarks, joined": (clocks.app, clocks.matched),
    "three watermarks, united": (clocks.app, clocks.merged),
}


@pytest.mark.parametrize("case", OPERATORS)
def test_a_standby_follows_and_goes_on_as_the_primary_would(spark: SparkSession, tmp_path: Path, case: str) -> None:
    """And so does a query that starts on a checkpoint, and a primary that reads back what its standby has done."""
    topology, operator = OPERATORS[case]
    rows = Rows(tmp_path, topology, operator)
    store = Store(tmp_path / "shipped", SliceId(operator.name, 0), Disk())
    primary, standby, heir = (Half(spark, f"{operator.name}-{role}", tmp_path, operator) for role in "abc")
    shipped, held = Shipped(), Shipped()

    def work_to(epoch: int) -> None:
        for number in range(max(primary.batches, default=-1) + 1, epoch + 1):
            primary.feed(rows, number)
        store.ship(primary.checkpoint(epoch), epoch, 1, shipped)
        store.recycle(released=EPOCHS)

    primary.start()
    work_to(3)
    marker, held = store.restore(standby.directory, None)
    assert forget_last_commit(standby.directory) == 3
    standby.start(marker)
    assert standby.feed(rows, 3) == primary.batches[3]
    assert standby.query.watermarks(3) == primary.query.watermarks(3)
    loaded = []
    for epoch in (4, 5, 9, 10, 14, 21):
        work_to(epoch)
        pulled = store.pull(standby.directory, held, epoch - 1)
        assert pulled is not None
        standby.jump(pulled[0], keep_state=True)
        loaded.append(standby.query.state_loaded)
    assert all(loaded), loaded
    heir.start(store.restore(heir.directory, None)[0])
    for epoch in range(22, 27):
        expected = primary.feed(rows, epoch)
        assert standby.feed(rows, epoch) == expected, epoch
        assert heir.feed(rows, epoch) == expected, epoch
        assert standby.query.watermarks(epoch) == heir.query.watermarks(epoch) == primary.query.watermarks(epoch)
    heir.query.stop()

    read_back(rows, store, primary, standby, (shipped, held))
    primary.query.stop()
    standby.query.stop()


def read_back(rows: Rows, store: Store, primary: Half, standby: Half, known: tuple[Shipped, Shipped]) -> None:
    """The primary stands still while its standby works and ships; then it takes over what it has missed."""
    shipped, held = known
    for epoch in range(27, 33):
        standby.feed(rows, epoch)
    store.ship(standby.checkpoint(32), 32, 2, held)
    pulled = store.pull(primary.directory, shipped, 26)
    assert pulled is not None
    primary.jump(pulled[0], keep_state=True)
    for epoch in range(33, EPOCHS):
        assert primary.feed(rows, epoch) == standby.feed(rows, epoch), epoch
    assert not set(primary.batches) & set(range(27, 33)), "none of it was done twice"


@pytest.mark.parametrize("operator", [clocks.matched, kinds.windows], ids=["two watermarks", "one watermark"])
def test_a_checkpoint_without_watermarks_is_refused_where_they_are_needed(
    spark: SparkSession, tmp_path: Path, operator: Operator
) -> None:
    old = Marker(3, 1, (), None)
    half = Half(spark, f"old-{operator.name}", tmp_path, operator)
    if operator is clocks.matched:
        with pytest.raises(Unavailable, match="does not hold the watermarks of its inputs"):
            half.start(old)
    else:
        half.start(old)
    half.query.stop()
