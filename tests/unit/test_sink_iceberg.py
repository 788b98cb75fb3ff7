"""Every epoch is one snapshot of an Iceberg table, whoever is interrupted and however many write."""

from __future__ import annotations

import datetime as dt
import decimal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from tests.pages import example
from tests.sites import a_context, deployed, run_until

from understudy.errors import InvalidInput, Unavailable
from understudy.log.disk import Disk
from understudy.model.names import SliceId
from understudy.runtime.application import load
from understudy.sinks import iceberg as module
from understudy.sinks.iceberg import Iceberg, IcebergWriter
from understudy.sinks.interface import Written
from understudy.stream.sink import SinkReplica
from understudy.stream.source import SourceReplica


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64()), "small": pa.array([n % 100 for n in numbers], pa.int8())})


def settings(home: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{home}/catalog.db", "warehouse": f"file://{home}/warehouse"}


def nothing(_: str) -> None:
    pass


def opened(
    home: Path, run: str = "run-1", name: str = "out", on_step: Callable[[str], None] = nothing
) -> IcebergWriter:
    return IcebergWriter(Iceberg("shop.t", properties=settings(home)), name, run, on_step)


def catalog(home: Path) -> Catalog:
    return load_catalog("default", **settings(home))


def numbers(home: Path) -> list[int]:
    found: list[int] = catalog(home).load_table("shop.t").scan().to_arrow().column("n").to_pylist()
    return sorted(found)


class Crash(BaseException):
    """The writer's process ends here."""


def test_an_epoch_offered_twice_is_written_once(tmp_path: Path) -> None:
    first = opened(tmp_path)
    assert [first.write(0, rows(1)), first.write(0, rows(1)), first.write(1, rows())] == [
        Written.ONCE,
        Written.THERE,
        Written.ONCE,
    ]
    second = opened(tmp_path)
    assert [second.write(1, rows()), second.write(2, rows(2))] == [Written.THERE, Written.ONCE]
    assert first.write(2, rows(2)) is Written.THERE
    assert numbers(tmp_path) == [1, 2]
    summaries: list[Any] = [one.summary for one in catalog(tmp_path).load_table("shop.t").snapshots()]
    assert [one["understudy.epoch"] for one in summaries] == ["0", "1", "2"]
    with pytest.raises(InvalidInput, match="lacks epochs 3 to 6"):
        second.write(7, rows(7))


@pytest.mark.parametrize("step", ["begun", "committed"])
def test_killed_at_any_step_the_epoch_is_whole_or_not_there(tmp_path: Path, step: str) -> None:
    def crash(name: str) -> None:
        if name == step:
            raise Crash

    opened(tmp_path).write(0, rows(0))
    with pytest.raises(Crash):
        opened(tmp_path, on_step=crash).write(1, rows(1, 2))
    written = opened(tmp_path).write(1, rows(1, 2))
    assert written is (Written.THERE if step == "committed" else Written.ONCE)
    assert numbers(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("first", [0, 1])
def test_a_zombie_writes_nothing_after_its_successor(tmp_path: Path, first: int) -> None:
    """It has looked at the table and stands before its commit, while its successor writes this epoch and the next."""
    successor: list[IcebergWriter] = []

    def freeze(name: str) -> None:
        if name == "begun" and not successor:
            successor.append(opened(tmp_path))
            assert [successor[0].write(epoch, rows(epoch)) for epoch in (first, first + 1)] == [Written.ONCE] * 2

    if first:
        opened(tmp_path).write(0, rows(0))
    zombie = opened(tmp_path, on_step=freeze)
    assert [zombie.write(epoch, rows(epoch)) for epoch in (first, first + 1)] == [Written.THERE] * 2
    assert numbers(tmp_path) == list(range(first + 2))


def test_a_zombie_without_rows_does_not_turn_the_epoch_back(tmp_path: Path) -> None:
    def freeze(name: str) -> None:
        if name == "begun" and not done:
            done.append(name)
            successor = opened(tmp_path)
            assert [successor.write(epoch, rows()) for epoch in (1, 2, 3)] == [Written.ONCE] * 3

    done: list[str] = []
    opened(tmp_path).write(0, rows(0))
    assert opened(tmp_path, on_step=freeze).write(1, rows()) is Written.THERE
    assert catalog(tmp_path).load_table("shop.t").properties["understudy.epoch"] == "3"


def test_writers_in_two_threads_write_each_epoch_once(tmp_path: Path) -> None:
    won: list[int] = []
    opened(tmp_path).write(0, rows(0))
    gate = threading.Barrier(2, timeout=120)

    def work() -> None:
        mine = opened(tmp_path)
        gate.wait()
        won.extend(epoch for epoch in range(1, 5) if mine.write(epoch, rows(epoch)))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [1, 2, 3, 4]
    assert numbers(tmp_path) == [0, 1, 2, 3, 4]


def test_others_may_append_and_nothing_of_ours_stays_in_their_settings(tmp_path: Path) -> None:
    def meanwhile(name: str) -> None:
        if name == "begun" and not done:
            done.append(name)
            catalog(tmp_path).load_table("shop.t").append(rows(100).cast(stored))

    done: list[str] = []
    stored = pa.schema([("n", pa.int64()), ("small", pa.int32())])
    opened(tmp_path).write(0, rows(0))
    assert opened(tmp_path, on_step=meanwhile).write(1, rows(1)) is Written.ONCE
    assert numbers(tmp_path) == [0, 1, 100]
    assert set(catalog(tmp_path).load_table("shop.t").properties) == {
        "understudy.run",
        "understudy.sink",
        "understudy.epoch",
    }


def test_another_run_is_refused(tmp_path: Path) -> None:
    late = opened(tmp_path, run="run-3")
    opened(tmp_path).write(0, rows(0))
    with pytest.raises(InvalidInput, match="holds epochs of run run-1, sink 'out'"):
        opened(tmp_path, run="run-2")
    with pytest.raises(InvalidInput, match="holds epochs of run run-1"):
        opened(tmp_path, name="other")
    with pytest.raises(InvalidInput, match="holds epochs of run run-1"):
        late.write(0, rows(100))
    assert numbers(tmp_path) == [0]


def test_a_table_that_does_not_fit_is_refused_with_the_difference(tmp_path: Path) -> None:
    catalog(tmp_path).create_namespace("shop")
    catalog(tmp_path).create_table("shop.t", pa.schema([("n", pa.int32()), ("who", pa.string())]))
    with pytest.raises(InvalidInput) as caught:
        opened(tmp_path).write(0, rows(1))
    assert "column 'small' is missing; column 'n' is int32 and the rows have int64" in caught.value.what
    strange = IcebergWriter(Iceberg("shop.new", properties=settings(tmp_path)), "out", "run-1")
    with pytest.raises(InvalidInput, match="Iceberg has no type"):
        strange.write(0, pa.table({"t": pa.array([dt.timedelta(1)])}))


def test_a_snapshot_is_synced_with_all_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(Disk, "sync", lambda _, path: synced.append(path))
    opened(tmp_path).write(0, rows(0, 1))
    endings = {path.name.rsplit(".", 1)[-1] for path in synced if path.is_file()}
    assert endings == {"parquet", "avro", "json"}


def test_values_of_every_type_come_back(tmp_path: Path) -> None:
    at = dt.datetime(2013, 1, 1, 12, 0, 0, 5, tzinfo=dt.UTC)
    table = pa.table(
        {
            "z": pa.array([at, None], pa.timestamp("us", "UTC")),
            "l": pa.array([at.replace(tzinfo=None), None], pa.timestamp("us")),
            "d": pa.array([decimal.Decimal("1.10"), None], pa.decimal128(10, 2)),
            "y": pa.array([b"\x00\xff", None], pa.binary()),
            "a": pa.array([["x", None], None], pa.list_(pa.string())),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
            "s": pa.array([{"x": 1}, None], pa.struct({"x": pa.int16()})),
        }
    )
    opened(tmp_path).write(0, table)
    opened(tmp_path).write(1, table.slice(0, 0))
    assert catalog(tmp_path).load_table("shop.t").scan().to_arrow().to_pylist() == table.to_pylist()


def test_a_catalog_that_is_not_there_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.1)
    with pytest.raises(Unavailable, match="cannot be written"):
        opened(tmp_path / "missing").write(0, rows(0))
    with pytest.raises(InvalidInput, match="cannot be written"):
        IcebergWriter(Iceberg("shop.t", "nobody-configured-this"), "out", "run-1")
    with pytest.raises(InvalidInput, match="no name of an Iceberg table"):
        Iceberg("orders")


def test_the_example_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sink is deployed three times, and stopped in between."""
    given = settings(tmp_path)
    monkeypatch.setenv("SHOP_CATALOG", given["uri"])
    monkeypatch.setenv("SHOP_WAREHOUSE", given["warehouse"])
    site = a_context(tmp_path / "home", load(example("iceberg", tmp_path)), epochs=9)
    orders = SliceId("orders", 0)
    run_until(SourceReplica(site, deployed(orders)), lambda: site.log.newest(orders) == 8)
    for generation in (1, 2, 3):
        sink = SinkReplica(site, deployed(SliceId("out", 0), generation))
        run_until(sink, lambda sink=sink, goal=3 * generation - 1: sink.status().epoch >= goal)  # type: ignore[misc]
    found = catalog(tmp_path).load_table("shop.orders").scan().to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["order"]) == [{"order": n, "cents": n * 3 % 1000} for n in range(900)]
