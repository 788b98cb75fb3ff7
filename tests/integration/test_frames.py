"""The epoch source by itself: what a query sees of bags that are announced to its gate."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from understudy.log import bag
from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.log.interface import Stored
from understudy.model.layout import Channel, Split
from understudy.model.names import SliceId
from understudy.model.schema import parse
from understudy.stream import frames

pytestmark = pytest.mark.spark

SCHEMA = parse("at long, name string")
LEFT, RIGHT = SliceId("rows", 0), SliceId("rows", 1)


class Bench:
    """A query over epochs whose batches are collected, in the order in which Spark saw the rows."""

    def __init__(
        self, spark: SparkSession, folder: Path, inputs: int, build: Callable[..., DataFrame], *, strict: bool
    ) -> None:
        self.name = f"{folder.name}-query"
        self.gate = frames.gate(spark, self.name)
        self.log = FileLog(folder / "log", Disk())
        self.folder = folder
        self.batches: dict[int, list[dict[str, Any]]] = {}
        self._arrived = threading.Condition()
        streams = frames.inputs(spark, self.name, [SCHEMA] * inputs, strict=strict)
        self.query = frames.start(build(*streams), self.name, "append", folder / "checkpoint", self._batch)

    def _batch(self, frame: DataFrame, _: int) -> None:
        with self._arrived:
            self.batches[int(self.gate.planned())] = frame.toArrow().to_pylist()
            self._arrived.notify_all()

    def publish(self, slice_id: SliceId, epoch: int, rows: list[tuple[int, str]]) -> Stored:
        table = pa.table({"at": [at for at, _ in rows], "name": [name for _, name in rows]}, schema=SCHEMA)
        return self.log.publish(bag.make(slice_id, epoch, table, ()), durable=False).stored

    def wait(self, epoch: int) -> list[str]:
        with self._arrived:
            assert self._arrived.wait_for(lambda: epoch in self.batches or self.query.exception(), 120)
        assert self.query.exception() is None
        return [row["name"] for row in self.batches[epoch]]


@contextmanager
def bench(
    spark: SparkSession, folder: Path, inputs: int, build: Callable[..., DataFrame], *, strict: bool = False
) -> Iterator[Bench]:
    made = Bench(spark, folder, inputs, build, strict=strict)
    yield made
    made.query.stop()
    frames.remove_gate(spark, made.name)


def channel(upstream: SliceId, number: int = 0) -> Channel:
    return Channel(number, upstream, Split(), 0)


def test_an_epoch_is_a_batch_and_channels_keep_their_order(spark: SparkSession, tmp_path: Path) -> None:
    with bench(spark, tmp_path, 1, lambda rows: rows) as made:
        for epoch in range(3):
            bags = [made.publish(LEFT, epoch, [(9, "a"), (1, "b")]), made.publish(RIGHT, epoch, [(5, f"c{epoch}")])]
            lines = [line for stored, s in zip(bags, (LEFT, RIGHT), strict=True) for line in stored.lines(channel(s))]
            made.gate.announce(epoch, "\n".join(lines))
        assert [made.wait(epoch) for epoch in range(3)] == [["a", "b", f"c{epoch}"] for epoch in range(3)]
        assert made.gate.awaitCommitted(2, 120_000) == 2


def test_strict_order_sorts_across_channels_and_keeps_ties(spark: SparkSession, tmp_path: Path) -> None:
    with bench(spark, tmp_path, 1, lambda rows: rows) as made:
        left = made.publish(LEFT, 0, [(3, "l3"), (1, "l1"), (2, "l2")])
        right = made.publish(RIGHT, 0, [(2, "r2"), (0, "r0"), (2, "again")])
        bags = [(channel(LEFT), left), (channel(RIGHT), right)]
        lines = frames.strict_lines(tmp_path / "sorted" / "0.rows", bags, [SCHEMA], "at")
        made.gate.announce(0, "\n".join(lines))
        assert made.wait(0) == ["r0", "l1", "l2", "r2", "again", "l3"]


def test_strict_order_holds_across_many_segments(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece of a few bytes each, and more rows than usually fit into one partition."""
    monkeypatch.setattr(bag, "_SEGMENT_BYTES", 64 << 10)
    count = (1 << 18) + 100
    with bench(spark, tmp_path, 1, _numbered, strict=True) as made:
        left = made.publish(LEFT, 0, [(count - at, "x") for at in range(count)])
        lines = frames.strict_lines(tmp_path / "sorted" / "0.rows", [(channel(LEFT), left)], [SCHEMA], "at")
        assert len(lines) > 50
        made.gate.announce(0, "\n".join(lines))
        assert made.wait(0) == [f"0 {at}" for at in range(1, count + 1)]


def _numbered(rows: DataFrame) -> DataFrame:
    """Every row says in which partition it was read."""
    return rows.selectExpr("at", "concat(spark_partition_id(), ' ', at) AS name")


def test_inputs_of_one_source_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    def both(rows: DataFrame, others: DataFrame) -> DataFrame:
        return rows.selectExpr("at", "concat('first ', name) AS name").union(others)

    with bench(spark, tmp_path, 2, both) as made:
        lines = made.publish(LEFT, 0, [(1, "a")]).lines(channel(LEFT, 0))
        lines += made.publish(RIGHT, 0, [(2, "b")]).lines(channel(RIGHT, 1))
        made.gate.announce(0, "\n".join(lines))
        assert sorted(made.wait(0)) == ["b", "first a"]


def test_a_flipped_byte_stops_the_query_and_names_the_bag(spark: SparkSession, tmp_path: Path) -> None:
    with bench(spark, tmp_path, 1, lambda rows: rows) as made:
        stored = made.publish(LEFT, 0, [(1, "a"), (2, "b")])
        content = bytearray(stored.path.read_bytes())
        content[-20] ^= 1
        stored.path.write_bytes(content)
        made.gate.announce(0, "\n".join(stored.lines(channel(LEFT))))
        with pytest.raises(Exception, match="damaged bag"):
            made.query.awaitTermination(120)
        assert str(stored.path) in str(made.query.exception())


def test_a_query_works_in_the_pool_of_its_role_from_the_next_batch_on(spark: SparkSession, tmp_path: Path) -> None:
    seen: dict[int, str | None] = {}

    def note(_: DataFrame, batch: int) -> None:
        # On the query's own thread, whose properties its jobs inherit.
        seen[batch] = spark.sparkContext.getLocalProperty("spark.scheduler.pool")

    with bench(spark, tmp_path / "rows", 1, lambda rows: rows) as made:
        gate = frames.gate(spark, "pools")
        query = frames.start(frames.inputs(spark, "pools", [SCHEMA])[0], "pools", "append", tmp_path / "pools", note)
        gate.attach(query._jsq)
        for epoch, pool in enumerate(("primaries", "secondaries", "primaries")):
            gate.pool(pool)
            gate.announce(epoch, "\n".join(made.publish(LEFT, epoch, [(1, "a")]).lines(channel(LEFT))))
            assert gate.awaitCommitted(epoch, 120_000) == epoch
        query.stop()
        frames.remove_gate(spark, "pools")
    # The query may have asked for its first epoch before it was told its role.
    assert (seen[1], seen[2]) == ("secondaries", "primaries")
    weights = [
        spark.sparkContext._jsc.sc().getPoolForName(name).get().weight() for name in ("primaries", "secondaries")
    ]
    assert weights == [100, 1]
