"""Every epoch once in PostgreSQL: whatever is killed, frozen, restarted or offered twice."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from understudy.errors import InvalidInput, Unavailable
from understudy.sinks import postgres as sink_module
from understudy.sinks.interface import Written
from understudy.sinks.note import Superseded
from understudy.sinks.postgres import Postgres as Sink
from understudy.sinks.postgres import PostgresWriter
from understudy.testing.services import Postgres

STEPS = ["begun", "copied", "noted", "committed"]


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64()), "word": [f"w{n}" for n in numbers]})


def opened(server: Postgres, table: str, run: str = "run-1", **options: Any) -> PostgresWriter:
    return PostgresWriter(Sink(server.address, table, **options), "out", run)


def numbers(server: Postgres, table: str) -> list[int]:
    with psycopg.connect(server.address) as connection:
        return [n for (n,) in connection.execute(f'SELECT n FROM "{table}" ORDER BY n').fetchall()]


class Crash(BaseException):
    """The writer's process ends here."""


def test_an_epoch_offered_twice_is_written_once(postgres: Postgres) -> None:
    first = opened(postgres, "twice")
    assert [first.write(0, rows(1)), first.write(0, rows(1)), first.write(1, rows())] == [
        Written.ONCE,
        Written.THERE,
        Written.ONCE,
    ]
    second = opened(postgres, "twice")
    assert [second.write(1, rows()), second.write(2, rows(2))] == [Written.THERE, Written.ONCE]
    assert numbers(postgres, "twice") == [1, 2]
    with pytest.raises(InvalidInput, match="lacks epochs 3 to 6"):
        second.write(7, rows(7))


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_the_epoch_is_whole_or_not_there(postgres: Postgres, step: str) -> None:
    table = f"killed_{step}"

    def crash(name: str) -> None:
        if name == step:
            raise Crash

    opened(postgres, table).write(0, rows(0))
    torn = PostgresWriter(Sink(postgres.address, table), "out", "run-1", crash)
    with pytest.raises(Crash):
        torn.write(1, rows(1, 2))
    assert numbers(postgres, table) == ([0, 1, 2] if step == "committed" else [0])
    written = opened(postgres, table).write(1, rows(1, 2))
    assert written is (Written.THERE if step == "committed" else Written.ONCE)
    assert numbers(postgres, table) == [0, 1, 2]


@pytest.mark.parametrize("step", STEPS[:3])
def test_a_zombie_writes_nothing_after_its_successor(postgres: Postgres, step: str) -> None:
    """It stands in its transaction, with the lock, while its successor takes over; then it goes on."""
    table = f"zombie_{step}"
    successor: list[PostgresWriter] = []

    def freeze(name: str) -> None:
        if name == step and not successor:
            successor.append(opened(postgres, table))
            assert successor[0].write(0, rows(0)) is Written.ONCE

    zombie = PostgresWriter(Sink(postgres.address, table), "out", "run-1", freeze)
    with pytest.raises(Superseded):
        zombie.write(0, rows(0))
    with pytest.raises(Superseded):
        zombie.write(1, rows(100))
    assert successor[0].write(1, rows(1)) is Written.ONCE
    assert numbers(postgres, table) == [0, 1]


FROZEN = """
import sys
import pyarrow as pa
from understudy.sinks.note import Superseded
from understudy.sinks.postgres import Postgres, PostgresWriter

def step(name):
    if name == "copied":
        print("copied", flush=True)
        sys.stdin.readline()

writer = PostgresWriter(Postgres(sys.argv[1], sys.argv[2]), "out", "run-1", step)
try:
    writer.write(0, pa.table({"n": [0]}))
except Superseded:
    print("superseded", flush=True)
"""


@contextmanager
def stopped_in_a_transaction(server: Postgres, table: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has copied the rows of epoch 0 and waits for a line before it commits."""
    command = [sys.executable, "-c", FROZEN, server.address, table]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "copied\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_frozen_process_does_not_hold_its_successor_up(postgres: Postgres) -> None:
    """A frozen process keeps its connection and its locks; a successor ends both."""
    with stopped_in_a_transaction(postgres, "frozen") as process:
        os.kill(process.pid, signal.SIGSTOP)
        writer = opened(postgres, "frozen")
        assert writer.write(0, pa.table({"n": [0]})) is Written.ONCE
        os.kill(process.pid, signal.SIGCONT)
        said, _ = process.communicate("go on\n", timeout=60)
    assert said == "superseded\n"
    assert numbers(postgres, "frozen") == [0]


def test_a_process_killed_between_begin_and_commit_leaves_nothing(postgres: Postgres) -> None:
    with stopped_in_a_transaction(postgres, "slain") as process:
        process.kill()
        process.wait(60)
    assert numbers(postgres, "slain") == []
    assert opened(postgres, "slain").write(0, pa.table({"n": [0]})) is Written.ONCE
    assert numbers(postgres, "slain") == [0]


def test_a_restarted_server_is_waited_for(postgres: Postgres) -> None:
    def restart(name: str) -> None:
        if name == "copied" and not restarted:
            restarted.append(threading.Thread(target=postgres.restart))
            postgres.kill()
            restarted[0].start()

    restarted: list[threading.Thread] = []
    writer = PostgresWriter(Sink(postgres.address, "restarted"), "out", "run-1", restart)
    assert writer.write(0, rows(0, 1)) is Written.ONCE
    restarted[0].join()
    assert writer.write(1, rows(2)) is Written.ONCE
    assert numbers(postgres, "restarted") == [0, 1, 2]


def test_a_commit_whose_answer_was_lost_is_not_repeated(postgres: Postgres) -> None:
    def cut(name: str) -> None:
        if name == "committed" and not lost:
            lost.append(name)
            raise psycopg.OperationalError("the connection was lost")

    lost: list[str] = []
    writer = PostgresWriter(Sink(postgres.address, "lost"), "out", "run-1", cut)
    assert writer.write(0, rows(0)) is Written.ONCE
    assert numbers(postgres, "lost") == [0]


def test_another_run_is_refused(postgres: Postgres) -> None:
    opened(postgres, "owned").write(0, rows(0))
    with pytest.raises(InvalidInput, match="holds epochs of run run-1, sink 'out'"):
        opened(postgres, "owned", run="run-2")
    with pytest.raises(InvalidInput, match="holds epochs of run run-1"):
        Sink(postgres.address, "owned").open("other", Path(), "run-1")
    opened(postgres, "owned").write(1, rows(1))


def test_a_table_that_does_not_fit_is_refused_with_the_difference(postgres: Postgres) -> None:
    with psycopg.connect(postgres.address) as connection:
        connection.execute("CREATE TABLE narrow (n smallint, who text NOT NULL)")
        connection.execute("CREATE TABLE own (id bigserial PRIMARY KEY, word varchar, n numeric, at timestamptz)")
    with pytest.raises(InvalidInput) as caught:
        opened(postgres, "narrow").write(0, rows(1))
    assert "'word' is missing; column 'n' is smallint and the rows have bigint; column 'who'" in caught.value.what
    assert opened(postgres, "own").write(0, rows(1)), "columns that fill themselves are the user's"
    with pytest.raises(InvalidInput, match=r"no unique index on exactly \(word\)"):
        opened(postgres, "own", mode="upsert", key="word").write(1, rows(1))


def test_an_upsert_replaces_rows(postgres: Postgres) -> None:
    writer = opened(postgres, "words", mode="upsert", key="word")
    for epoch, pairs in enumerate([[("a", 1), ("b", 1), ("a", 2)], [("b", 7)], []]):
        words, counts = [w for w, _ in pairs], [n for _, n in pairs]
        table = pa.table({"word": pa.array(words, pa.string()), "count": pa.array(counts, pa.int64())})
        assert writer.write(epoch, table) is Written.ONCE
    with psycopg.connect(postgres.address) as connection:
        assert connection.execute("SELECT * FROM words ORDER BY word").fetchall() == [("a", 2), ("b", 7)]
    with pytest.raises(InvalidInput, match="no value in column 'word'"):
        writer.write(3, pa.table({"word": pa.array([None], pa.string()), "count": [1]}))


def test_values_of_every_type_come_back(postgres: Postgres) -> None:
    at = dt.datetime(2013, 1, 1, 12, 0, 0, 5, tzinfo=dt.UTC)
    values = {
        "b": (True, pa.bool_()),
        "i": (-(2**63), pa.int64()),
        "f": (0.1, pa.float64()),
        "s": ('a\t"ü"\\\n,', pa.string()),
        "y": (b"\x00\xff", pa.binary()),
        "d": (dt.date(2013, 1, 1), pa.date32()),
        "z": (at, pa.timestamp("us", "UTC")),
        "l": (at.replace(tzinfo=None), pa.timestamp("us")),
        "m": (decimal.Decimal("1.10"), pa.decimal128(10, 2)),
        "t": (dt.timedelta(days=1, microseconds=3), pa.duration("us")),
        "a": (["x,y", None, "{}"], pa.list_(pa.string())),
        "n": ({"x": 1, "at": "2013-01-01T12:00:00.000005Z"}, None),
    }
    nested = pa.array([{"x": 1, "at": at}, None], pa.struct({"x": pa.int32(), "at": pa.timestamp("us", "UTC")}))
    plain = {name: pa.array([value, None], kind) for name, (value, kind) in values.items() if kind is not None}
    opened(postgres, "types").write(0, pa.table(plain | {"n": nested}))
    with psycopg.connect(postgres.address) as connection:
        found, empty = connection.execute("SELECT * FROM types").fetchall()
    assert found == tuple(value for value, _ in values.values())
    assert set(empty) == {None}


def test_a_server_that_is_not_there_is_one_clear_error(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_module, "PATIENCE_S", 0.2)
    with pytest.raises(Unavailable, match="cannot be reached"):
        Sink("host=127.0.0.1 port=9 user=me password=hunter2", "t").open("out", Path(), "r")


def test_a_server_that_refuses_us_is_not_waited_for(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_module, "PATIENCE_S", 10_000.0)
    with pytest.raises(Unavailable, match="cannot be reached") as caught:
        Sink(postgres.address.replace("/postgres", "/nowhere"), "t").open("out", Path(), "r")
    assert "does not exist" in caught.value.why
