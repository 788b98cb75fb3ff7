"""Every epoch once and whole: after any interruption, with two writers, on a full disk."""

from __future__ import annotations

import datetime as dt
import decimal
import errno
import io
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console as Terminal

from understudy.errors import InvalidInput, Unavailable
from understudy.log.disk import TEMPORARY, Disk
from understudy.sinks import Call, Console, JsonLines, Parquet, Sink, SinkWriter
from understudy.sinks.call import NotedWriter
from understudy.sinks.console import show
from understudy.sinks.directory import CLAIM, DirectoryWriter, Owner
from understudy.sinks.interface import Written
from understudy.sinks.jsonlines import encode, lines
from understudy.sinks.note import Note, Superseded

ROWS = pa.table({"n": [1, 2], "word": ["a", "ü"]})
EMPTY = ROWS.slice(0, 0)
ONCE, THERE = Written.ONCE, Written.THERE


class Crash(BaseException):
    """A power cut: nothing of ours catches it."""


def crash_after(step: int) -> Callable[[str], None]:
    seen: list[str] = []

    def hook(name: str) -> None:
        seen.append(name)
        if len(seen) > step:
            raise Crash

    return hook


def writer(path: Path, disk: Disk | None = None, run: str = "run-1") -> DirectoryWriter:
    return DirectoryWriter(path, Owner(run, "s"), "jsonl", encode, disk)


def files(path: Path) -> list[str]:
    return sorted(p.name for p in path.iterdir())


@pytest.mark.parametrize("sink", [Parquet("out"), JsonLines("out")])
def test_an_epoch_is_one_file_and_written_once(tmp_path: Path, sink: Sink) -> None:
    opened = sink.open("s", tmp_path, "run-1")
    assert opened.write(12, ROWS)
    assert not opened.write(12, EMPTY)
    assert opened.write(13, EMPTY)
    again = sink.open("s", tmp_path, "run-1")
    assert not again.write(13, ROWS)
    ending = "parquet" if isinstance(sink, Parquet) else "jsonl"
    expected = [CLAIM, f"epoch-0000000012.{ending}", f"epoch-0000000013.{ending}"]
    assert files(tmp_path / "out" / "out") == expected


def test_parquet_keeps_rows_and_types(tmp_path: Path) -> None:
    Parquet(tmp_path / "x").open("s", tmp_path, "r").write(0, pa.concat_tables([ROWS, ROWS]))
    Parquet(tmp_path / "x").open("s", tmp_path, "r").write(1, EMPTY)
    assert pq.read_table(tmp_path / "x" / "epoch-0000000000.parquet") == pa.concat_tables([ROWS, ROWS])
    assert pq.read_table(tmp_path / "x" / "epoch-0000000001.parquet").schema == ROWS.schema
    assert pq.read_table(tmp_path / "x").num_rows == 4


def test_json_lines_have_one_spelling() -> None:
    at = dt.datetime(2013, 1, 1, 12, 0, 0, 500, tzinfo=dt.UTC)
    table = pa.table(
        {
            "at": pa.array([at, None], pa.timestamp("us", tz="UTC")),
            "local": pa.array([at.replace(tzinfo=None, microsecond=0), None], pa.timestamp("us")),
            "day": pa.array([dt.date(2013, 1, 1), None]),
            "f": [1.5, float("nan")],
            "d": pa.array([decimal.Decimal("1.10"), None]),
            "b": [b"\x00\xff", None],
            "l": pa.array([[float("inf")], None]),
            "m": pa.array([[(1, "x")], None], pa.map_(pa.int32(), pa.string())),
            "s": pa.array(
                [{"at": at, "t": "ü\n"}, None], pa.struct({"at": pa.timestamp("us", "UTC"), "t": pa.string()})
            ),
            "dur": pa.array([dt.timedelta(seconds=1), None]),
        }
    )
    first, second = lines(table)
    assert first == (
        '{"at":"2013-01-01T12:00:00.000500Z","local":"2013-01-01T12:00:00","day":"2013-01-01","f":1.5,"d":"1.10",'
        '"b":"AP8=","l":["Infinity"],"m":{"1":"x"},"s":{"at":"2013-01-01T12:00:00.000500Z","t":"ü\\n"},"dur":1000000}'
    )
    assert json.loads(second) == dict.fromkeys(table.column_names) | {"f": "NaN"}


def test_another_run_is_refused(tmp_path: Path) -> None:
    writer(tmp_path / "out").write(0, ROWS)
    with pytest.raises(InvalidInput, match="epochs of run run-1"):
        writer(tmp_path / "out", run="run-2")
    (tmp_path / "out" / CLAIM).write_text("half")
    with pytest.raises(InvalidInput, match="cannot be read"):
        writer(tmp_path / "out")
    (tmp_path / "out" / CLAIM).unlink()
    with pytest.raises(InvalidInput, match="unknown run"):
        writer(tmp_path / "out")


def test_another_sink_of_the_same_run_is_refused(tmp_path: Path) -> None:
    JsonLines("out").open("first", tmp_path, "r")
    with pytest.raises(InvalidInput, match="epochs of sink 'first'"):
        JsonLines(tmp_path / "out" / "out").open("second", tmp_path, "r")


@pytest.mark.parametrize("path", ["s3a://bucket/x", Path("s3a://bucket/x"), "hdfs:///x", "file:///tmp/x", "gs://b", ""])
@pytest.mark.parametrize("sink", [Parquet, JsonLines])
def test_an_address_is_no_path(sink: type[Parquet | JsonLines], path: str | Path) -> None:
    """It would become a directory of that name on this machine."""
    with pytest.raises(InvalidInput, match="cannot write to"):
        sink(path)


def test_the_second_writer_makes_durable_what_it_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first may have been killed between its link and its sync, and a receipt follows from what is there."""
    writer(tmp_path).write(0, ROWS)
    second = writer(tmp_path)
    synced: list[Path] = []
    for name in ("sync", "sync_directory"):
        monkeypatch.setattr(Disk, name, lambda _, path: synced.append(path))
    assert not second.write(0, ROWS)
    assert synced == [tmp_path / "epoch-0000000000.jsonl", tmp_path]


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(InvalidInput, match="is not a directory"):
        writer(tmp_path / "out")
    with pytest.raises(Unavailable, match="cannot be written"):
        writer(tmp_path / "out" / "below")


@pytest.mark.parametrize("step", range(7))
def test_interrupted_after_any_step_the_epoch_is_whole_or_not_there(tmp_path: Path, step: int) -> None:
    path = tmp_path / "out"
    crashed = False
    try:
        torn = writer(path, Disk(crash_after(step)))
        torn.write(0, ROWS)
    except Crash:
        crashed = True
    assert crashed == (step < 6), "two files, three steps each"
    there = path / "epoch-0000000000.jsonl"
    assert not there.exists() or there.read_bytes() == encode(ROWS)
    writer(path).write(0, ROWS)
    assert there.read_bytes() == encode(ROWS)
    assert files(path) == [CLAIM, there.name]


def test_leftovers_of_a_killed_writer_go_when_their_epoch_is_there(tmp_path: Path) -> None:
    writer(tmp_path).write(0, ROWS)
    done, other = (tmp_path / f"{TEMPORARY}epoch-{n:010d}.jsonl-abcd" for n in (0, 1))
    done.write_text("half")
    other.write_text("half")
    writer(tmp_path)
    assert not done.exists()
    assert other.exists(), "its writer may be alive"


@pytest.mark.parametrize("step", ["written", "synced", "linked"])
def test_a_second_writer_at_any_step_leaves_one_whole_file(tmp_path: Path, step: str) -> None:
    answers: list[Written] = []
    second = writer(tmp_path)

    def hook(name: str) -> None:
        if name == step:
            answers.append(second.write(0, ROWS))

    first = writer(tmp_path, Disk(hook))
    answers.append(first.write(0, ROWS))
    assert sorted(answers) == [THERE, ONCE]
    assert files(tmp_path) == [CLAIM, "epoch-0000000000.jsonl"]


def test_writers_in_many_threads_write_each_epoch_once(tmp_path: Path) -> None:
    won: list[int] = []
    gate = threading.Barrier(4, timeout=120)

    def work() -> None:
        mine = writer(tmp_path)
        gate.wait()
        won.extend(epoch for epoch in range(20) if mine.write(epoch, ROWS))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(20))
    assert all((tmp_path / f"epoch-{e:010d}.jsonl").read_bytes() == encode(ROWS) for e in range(20))
    assert len(files(tmp_path)) == 21


@pytest.mark.parametrize("step", ["written", "synced"])
def test_a_full_disk_leaves_no_half_file(tmp_path: Path, step: str) -> None:
    def hook(name: str) -> None:
        if name == step:
            raise OSError(errno.ENOSPC, "No space left on device")

    writer(tmp_path)
    full = writer(tmp_path, Disk(hook))
    with pytest.raises(Unavailable) as caught:
        full.write(3, ROWS)
    assert str(tmp_path / "epoch-0000000003.jsonl") in caught.value.what
    assert caught.value.why
    assert caught.value.fix
    assert files(tmp_path) == [CLAIM]
    assert writer(tmp_path).write(3, ROWS)


def test_call_gets_every_epoch_once_in_a_quiet_life(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    sink = Call(lambda epoch, rows: seen.append((epoch, rows.num_rows)))
    first = sink.open("s", tmp_path, "run-1")
    assert [first.write(0, ROWS), first.write(0, ROWS), first.write(1, EMPTY)] == [ONCE, THERE, ONCE]
    second = sink.open("s", tmp_path, "run-1")
    assert [second.write(1, EMPTY), second.write(2, ROWS), first.write(2, ROWS)] == [THERE, ONCE, THERE]
    with pytest.raises(Superseded):
        first.write(3, ROWS)
    assert seen == [(0, 2), (1, 0), (2, 2)]
    with pytest.raises(InvalidInput, match="belongs to run run-1"):
        sink.open("s", tmp_path, "run-2")


STEPS_OF_A_CALL = ["written", "synced", "linked", "delivered", "written", "synced", "linked"]
"""Begun, delivered, done; before them a writer enters, in three more steps."""


@pytest.mark.parametrize("step", range(3 + len(STEPS_OF_A_CALL)))
def test_a_call_that_may_have_come_twice_is_counted(tmp_path: Path, step: int) -> None:
    """Whatever is interrupted: an epoch that was delivered twice is reported as such."""
    seen: list[int] = []

    def opened(disk: Disk | None) -> SinkWriter:
        return NotedWriter(Note("s", tmp_path, "r", disk), "s", lambda epoch, _: seen.append(epoch), disk)

    opened(None).write(0, ROWS)
    with pytest.raises(Crash):
        opened(Disk(crash_after(step))).write(1, ROWS)
    after = [opened(None).write(epoch, ROWS) for epoch in (1, 2)]
    assert seen in ([0, 1, 2], [0, 1, 1, 2])
    assert seen == [0, 1, 2] or after[0] is Written.AGAIN
    assert after[0] is not Written.ONCE or step < 5, "when the delivery had begun it is not called the first"
    assert after[1] is Written.ONCE


@pytest.mark.parametrize("step", range(1 + len(STEPS_OF_A_CALL)))
def test_a_zombie_is_counted_or_kept_from_calling(tmp_path: Path, step: int) -> None:
    """A writer freezes before a step of its epoch; meanwhile the next writer delivers that epoch and one more."""
    seen: list[int] = []
    answers: list[Written] = []
    taken: list[str] = []

    def opened(disk: Disk | None = None) -> SinkWriter:
        return NotedWriter(Note("s", tmp_path, "r", disk), "s", lambda epoch, _: seen.append(epoch), disk)

    def freeze(name: str) -> None:
        if taken or name == "before":
            taken.append(name)
        if len(taken) == step + 1:
            new = opened()
            answers.extend(new.write(epoch, ROWS) for epoch in (0, 1))

    zombie = opened(Disk(freeze))
    freeze("before")
    with suppress(Superseded):
        answers.append(zombie.write(0, ROWS))
    assert seen.count(0) == (2 if 4 <= step < 7 else 1)
    assert (Written.AGAIN in answers) == (3 <= step < 7), "whatever was begun, and not done, may have been delivered"
    assert Note("s", tmp_path, "r").last() == 1, "the note never goes back"


def test_a_call_that_raises_is_not_delivered(tmp_path: Path) -> None:
    def deliver(epoch: int, rows: pa.Table) -> None:
        raise ValueError("no")

    opened = Call(deliver).open("s", tmp_path, "r")
    with pytest.raises(ValueError, match="no") as caught:
        opened.write(4, ROWS)
    assert "sink 's' delivered epoch 4" in caught.value.__notes__[0]
    assert Call(lambda *_: None).open("s", tmp_path, "r").write(4, ROWS) is Written.ONCE
    (tmp_path / "sinks" / "s" / "done" / "last").write_text("{}")
    with pytest.raises(InvalidInput, match="cannot be read"):
        Call(lambda *_: None).open("s", tmp_path, "r").write(5, ROWS)
    with pytest.raises(InvalidInput, match="needs a function"):
        Call("deliver")  # type: ignore[arg-type]


@pytest.mark.parametrize("terminal", [True, False])
def test_console_shows_the_first_rows(terminal: bool) -> None:
    out = io.StringIO()
    rows = pa.table({"n": [1, 2, None], "word": ["[red]a[/red]", "b", "third"]})
    show(Terminal(file=out, force_terminal=terminal, width=60), "words", 3, rows, 2)
    text = out.getvalue()
    assert "words epoch" in text
    assert "[red]a[/red]" in text
    assert "third" not in text


def test_console_prints_lines_where_there_is_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = Console(rows=1).open("words", tmp_path, "r")
    assert opened.write(0, ROWS)
    assert not opened.write(0, ROWS)
    assert capsys.readouterr().out == 'words epoch 0: 2 rows\n{"n":1,"word":"a"}\n'
    with pytest.raises(InvalidInput):
        Console(rows=-1)
