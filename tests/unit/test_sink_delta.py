"""Every epoch is one commit of a Delta table, whoever is interrupted and however many write."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from understudy.errors import InvalidInput, Unavailable
from understudy.log.disk import Disk
from understudy.sinks import delta as module
from understudy.sinks.delta import Delta, DeltaWriter
from understudy.sinks.interface import Written


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64()), "word": pa.array([f"w{n % 2}" for n in numbers], pa.string())})


def nothing(_: str) -> None:
    pass


def opened(path: Path, run: str = "run-1", on_step: Callable[[str], None] = nothing) -> DeltaWriter:
    return DeltaWriter(Delta(path), str(path), "out", run, on_step)


def numbers(path: Path) -> list[int]:
    found: list[int] = DeltaTable(path).to_pyarrow_table().column("n").to_pylist()
    return sorted(found)


class Crash(BaseException):
    """The writer's process ends here."""


def test_an_epoch_offered_twice_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "out" / "t"
    first = Delta("t").open("out", tmp_path, "run-1")
    assert [first.write(0, rows(1)), first.write(0, rows(1)), first.write(1, rows())] == [
        Written.ONCE,
        Written.THERE,
        Written.ONCE,
    ]
    second = Delta("t").open("out", tmp_path, "run-1")
    assert [second.write(1, rows()), second.write(2, rows(2))] == [Written.THERE, Written.ONCE]
    assert first.write(2, rows(2)) is Written.THERE
    assert numbers(path) == [1, 2]
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


def test_a_zombie_writes_nothing_after_its_successor(tmp_path: Path) -> None:
    """It has looked at the table and stands before its commit, while its successor writes this epoch and the next."""
    successor: list[DeltaWriter] = []

    def freeze(name: str) -> None:
        if name == "begun" and not successor:
            successor.append(opened(tmp_path))
            assert [successor[0].write(epoch, rows(epoch)) for epoch in (1, 2)] == [Written.ONCE] * 2

    opened(tmp_path).write(0, rows(0))
    zombie = opened(tmp_path, on_step=freeze)
    assert [zombie.write(epoch, rows(epoch)) for epoch in (1, 2)] == [Written.THERE] * 2
    assert numbers(tmp_path) == [0, 1, 2]


def test_writers_in_many_threads_write_each_epoch_once(tmp_path: Path) -> None:
    won: list[int] = []
    gate = threading.Barrier(3, timeout=120)

    def work() -> None:
        mine = opened(tmp_path)
        gate.wait()
        won.extend(epoch for epoch in range(8) if mine.write(epoch, rows(epoch)))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(8))
    assert numbers(tmp_path) == list(range(8))


def test_others_may_append_to_the_table(tmp_path: Path) -> None:
    def meanwhile(name: str) -> None:
        if name == "begun":
            write_deltalake(tmp_path, rows(100), mode="append")

    opened(tmp_path).write(0, rows(0))
    opened(tmp_path, on_step=meanwhile).write(1, rows(1))
    assert {0, 1, 100} == set(numbers(tmp_path))
    assert numbers(tmp_path).count(1) == 1


def test_epochs_are_remembered_behind_a_checkpoint(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    for epoch in range(3):
        writer.write(epoch, rows(epoch))
    DeltaTable(tmp_path).create_checkpoint()
    DeltaTable(tmp_path).optimize.compact()
    assert opened(tmp_path).write(2, rows(2)) is Written.THERE
    assert numbers(tmp_path) == [0, 1, 2]


def test_another_run_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).write(0, rows(0))
    with pytest.raises(InvalidInput, match="holds epochs of run run-1, sink 'out'"):
        opened(tmp_path, run="run-2")
    with pytest.raises(InvalidInput, match="holds epochs of run run-1"):
        Delta(tmp_path).open("other", tmp_path, "run-1")


def test_two_runs_that_begin_at_once_do_not_mix(tmp_path: Path) -> None:
    first, second = opened(tmp_path), opened(tmp_path, run="run-2")
    first.write(0, rows(0))
    with pytest.raises(InvalidInput, match="holds epochs of run run-1"):
        second.write(0, rows(100))
    assert numbers(tmp_path) == [0]


def test_a_table_that_does_not_fit_is_refused_with_the_difference(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"n": pa.array([1], pa.int32()), "who": ["x"]}))
    with pytest.raises(InvalidInput) as caught:
        opened(tmp_path).write(0, rows(1))
    assert "column 'word' is missing; column 'n' is int32 and the rows have int64; the rows have no column 'who'" in (
        caught.value.what
    )
    with pytest.raises(InvalidInput, match="Delta has no type"):
        opened(tmp_path / "new").write(0, pa.table({"t": pa.array([dt.timedelta(1)])}))


def test_a_commit_says_whose_it_is_and_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(Disk, "sync", lambda _, path: synced.append(path.name))
    Delta(tmp_path, partition_by="word").open("out", tmp_path, "run-1").write(0, rows(0, 1))
    (commit,) = [one for one in DeltaTable(tmp_path).history() if "understudy.epoch" in one]
    said = {name.removeprefix("understudy."): value for name, value in commit.items() if "understudy" in name}
    assert said == {"run": "run-1", "sink": "out", "epoch": 0}
    assert len([name for name in synced if name.endswith(".parquet")]) == 2
    assert json.dumps(commit, default=str)


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
            "s": pa.array([{"x": 1}, None], pa.struct({"x": pa.int8()})),
        }
    )
    opened(tmp_path).write(0, table)
    opened(tmp_path).write(1, table.slice(0, 0))
    assert DeltaTable(tmp_path).to_pyarrow_table().to_pylist() == table.to_pylist()


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.1)
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="cannot be written") as caught:
        opened(tmp_path / "file" / "table").write(0, rows(0))
    assert caught.value.fix
    for path in ("", "."):
        with pytest.raises(InvalidInput, match="cannot write to"):
            Delta(path)
