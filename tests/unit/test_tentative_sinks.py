"""Tentative epochs in sinks: marked, replaced, and never seen after their correction."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import understudy as us
from understudy.errors import InvalidInput
from understudy.log.disk import Disk
from understudy.sinks.directory import TENTATIVE
from understudy.stream.tentative import TentativeCopies, compared

ROWS = pa.table({"n": [1, 2, 3]})
SOME = pa.table({"n": [1, 9]})
MISSING = ("counts[1]",)
FILE_SINKS = [us.sinks.Parquet("out"), us.sinks.JsonLines("out")]


@pytest.mark.parametrize("sink", FILE_SINKS, ids=lambda sink: type(sink).__name__)
class TestFiles:
    def test_a_tentative_epoch_is_named_as_such(self, sink: us.sinks.Sink, tmp_path: Path) -> None:
        writer = sink.open_tentative("out", tmp_path, "1")
        writer.write_tentative(3, SOME, MISSING)
        (found,) = us.sinks.epochs(tmp_path / "out" / "out")
        assert (found.epoch, found.tentative, found.missing) == (3, True, MISSING)

    def test_who_reads_the_directory_as_a_table_does_not_see_it(self, sink: us.sinks.Sink, tmp_path: Path) -> None:
        sink.open_tentative("out", tmp_path, "1").write_tentative(3, SOME, MISSING)
        assert not list((tmp_path / "out" / "out").glob("epoch-*"))

    def test_the_stable_epoch_replaces_it(self, sink: us.sinks.Sink, tmp_path: Path) -> None:
        sink.open_tentative("out", tmp_path, "1").write_tentative(3, SOME, MISSING)
        stable = sink.open("out", tmp_path, "1")
        stable.write(3, ROWS)
        (found,) = us.sinks.epochs(tmp_path / "out" / "out")
        assert not found.tentative, "from the moment it is there"
        stable.withdraw_tentative(3)
        assert not list((tmp_path / "out" / "out" / TENTATIVE).iterdir())

    def test_the_last_tentative_write_counts(self, sink: us.sinks.Sink, tmp_path: Path) -> None:
        for rows, missing in ((SOME, ("a[0]", "b[0]")), (ROWS, MISSING)):
            sink.open_tentative("out", tmp_path, "1").write_tentative(3, rows, missing)
        (found,) = us.sinks.epochs(tmp_path / "out" / "out")
        assert found.missing == MISSING

    def test_withdrawing_twice_does_nothing(self, sink: us.sinks.Sink, tmp_path: Path) -> None:
        writer = sink.open("out", tmp_path, "1")
        writer.write_tentative(3, SOME, MISSING)
        writer.withdraw_tentative(3)
        writer.withdraw_tentative(3)
        assert us.sinks.epochs(tmp_path / "out" / "out") == []


def test_a_note_that_was_torn_names_nobody(tmp_path: Path) -> None:
    us.sinks.JsonLines("out").open("out", tmp_path, "1").write_tentative(3, SOME, MISSING)
    (tmp_path / "out" / "out" / TENTATIVE / "epoch-0000000003.json").write_text("{")
    assert us.sinks.epochs(tmp_path / "out" / "out")[0].missing == ()


def test_a_call_is_told_of_tentative_epochs_and_of_their_end(tmp_path: Path) -> None:
    calls: list[tuple[object, ...]] = []
    sink = us.sinks.Call(
        lambda epoch, rows: calls.append(("stable", epoch, rows.num_rows)),
        tentative=lambda epoch, rows, missing: calls.append(("tentative", epoch, rows.num_rows, missing)),
        withdraw=lambda epoch: calls.append(("withdrawn", epoch)),
    )
    stable = sink.open("out", tmp_path, "1")
    tentative = sink.open_tentative("out", tmp_path, "1")
    tentative.write_tentative(0, SOME, MISSING)
    assert stable.write(0, ROWS), "a writer of tentative epochs does not supersede it"
    stable.withdraw_tentative(0)
    tentative.withdraw_tentative(1)
    assert calls == [("tentative", 0, 2, MISSING), ("stable", 0, 3), ("withdrawn", 0), ("withdrawn", 1)]


def nothing(*_: object) -> None:
    pass


def test_what_cannot_be_withdrawn_need_not_be() -> None:
    assert us.sinks.Call(nothing, tentative=nothing).takes_tentative
    assert not us.sinks.Call(nothing).takes_tentative
    with pytest.raises(InvalidInput, match="no tentative="):
        us.sinks.Call(nothing, withdraw=nothing)


def test_sinks_say_whether_they_take_tentative_output() -> None:
    app = us.Topology("t", tentative_after="1 s")
    assert app.tentative_s == 1.0
    assert app.sink("files", "s", us.sinks.Parquet("a")).takes_tentative
    assert not app.sink("stable", "s", us.sinks.Parquet("b"), tentative=False).takes_tentative
    assert not app.sink("shown", "s", us.sinks.Console()).takes_tentative
    with pytest.raises(InvalidInput, match="cannot take tentative output"):
        app.sink("wrong", "s", us.sinks.Console(), tentative=True)


@pytest.mark.parametrize("after", [-1, "-2 s", float("inf")])
def test_a_deadline_is_a_time(after: str | float) -> None:
    with pytest.raises(InvalidInput):
        us.Topology("t", tentative_after=after)


class TestCopies:
    def test_copies_are_kept_until_they_are_dropped(self, tmp_path: Path) -> None:
        copies = TentativeCopies(tmp_path / "out", Disk())
        assert copies.until(9) == []
        for epoch in (4, 2, 7):
            copies.keep(epoch, SOME)
        assert copies.until(4) == [2, 4]
        copies.drop(2)
        copies.drop(2)
        assert copies.until(9) == [4, 7]

    def test_a_copy_is_compared_with_the_stable_rows(self, tmp_path: Path) -> None:
        copies = TentativeCopies(tmp_path / "out", Disk())
        copies.keep(1, SOME)
        found = copies.compare(1, ROWS)
        assert found is not None
        assert (found.rows, found.tentative_rows, found.had) == (3, 2, 1)

    def test_a_copy_that_was_torn_says_nothing(self, tmp_path: Path) -> None:
        copies = TentativeCopies(tmp_path / "out", Disk())
        copies.keep(1, SOME)
        (tmp_path / "out" / "0000000001.arrow").write_bytes(b"torn")
        assert copies.compare(1, ROWS) is None
        assert copies.until(1) == [1], "it is withdrawn all the same"

    def test_rows_count_as_often_as_they_occur(self) -> None:
        assert compared(pa.table({"n": [1, 1, 2]}), pa.table({"n": [1, 2, 2, 3]})).had == 2
        assert compared(ROWS, ROWS.slice(0, 0)).had == 0
