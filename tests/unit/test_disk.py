"""A crash at any instant leaves the old or the new, never half; the first writer wins."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.builders import count_steps, everything_in, interrupted, killed

from understudy.log.disk import TEMPORARY, Disk, DiskFull, sweep

Work = Callable[[Disk, Path], object]
Stop = Callable[[Callable[[Disk], object], int], bool]

OLD, NEW = b"old", b"new" * 50_000


def put(disk: Disk, path: Path) -> object:
    return disk.put_if_absent(path, [NEW[:10], NEW[10:]], durable=True)


def replace(disk: Disk, path: Path) -> object:
    disk.replace(path, [NEW[:10], NEW[10:]], durable=True)
    return path


@pytest.mark.parametrize("stop", [interrupted, killed])
@pytest.mark.parametrize("work", [put, replace])
@pytest.mark.parametrize("step", range(3))
def test_interrupted_anywhere_a_new_file_is_whole_or_absent(tmp_path: Path, work: Work, stop: Stop, step: int) -> None:
    path = tmp_path / "a" / "b"
    assert stop(lambda disk: work(disk, path), step)
    assert not path.exists() or path.read_bytes() == NEW
    work(Disk(), path)
    assert path.read_bytes() == NEW
    sweep(tmp_path)
    assert everything_in(tmp_path) == {"a/b": NEW}


@pytest.mark.parametrize("stop", [interrupted, killed])
@pytest.mark.parametrize("step", range(3))
def test_interrupted_anywhere_a_replaced_file_is_the_old_or_the_new(tmp_path: Path, stop: Stop, step: int) -> None:
    path = tmp_path / "b"
    path.write_bytes(OLD)
    assert stop(lambda disk: replace(disk, path), step)
    assert path.read_bytes() in (OLD, NEW)
    replace(Disk(), path)
    assert path.read_bytes() == NEW


@pytest.mark.parametrize("work", [put, replace])
def test_the_steps_above_are_all_there_are(tmp_path: Path, work: Work) -> None:
    assert count_steps(lambda disk: work(disk, tmp_path / "x")) == 3


@pytest.mark.parametrize("work", [put, replace])
def test_an_exception_leaves_no_temporary_file(tmp_path: Path, work: Work) -> None:
    for step in range(3):
        interrupted(lambda disk: work(disk, tmp_path / "x"), step)
        assert not list(tmp_path.rglob(f"{TEMPORARY}*"))


def test_the_second_writer_changes_nothing(tmp_path: Path) -> None:
    disk = Disk()
    assert disk.put_if_absent(tmp_path / "x", [OLD])
    assert not disk.put_if_absent(tmp_path / "x", [NEW])
    assert everything_in(tmp_path) == {"x": OLD}


def test_a_writer_that_loses_while_it_writes_learns_so(tmp_path: Path) -> None:
    def other_wins(step: str) -> None:
        if step == "written":
            Disk().put_if_absent(tmp_path / "x", [OLD])

    assert not Disk(on_step=other_wins).put_if_absent(tmp_path / "x", [NEW])
    assert everything_in(tmp_path) == {"x": OLD}


@pytest.mark.parametrize("moment", ["before", "written"])
def test_whoever_finds_a_durable_file_there_may_rely_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The winner may be killed between its link and its sync; the loser must not build on what a power cut undoes."""
    path = tmp_path / "x"

    def other_wins(step: str) -> None:
        if step == moment:
            Disk().put_if_absent(path, [OLD])

    other_wins("before")
    synced: list[Path] = []
    for name in ("sync", "sync_directory"):
        monkeypatch.setattr(Disk, name, lambda _, path: synced.append(path))
    assert not Disk(on_step=other_wins).put_if_absent(path, [NEW], durable=True)
    assert {path, tmp_path} <= set(synced)


@pytest.mark.parametrize("call", ["link", "fsync"])
def test_a_full_disk_says_what_to_do_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(DiskFull) as raised:
        put(Disk(), tmp_path / "x")
    assert str(tmp_path / "x") in raised.value.what
    assert "--resume" in raised.value.fix
    assert everything_in(tmp_path) == {}


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(OLD)
    with pytest.raises(NotADirectoryError):
        Disk().replace(tmp_path / "x" / "y", [NEW])


def test_sweeping_removes_only_what_is_unfinished(tmp_path: Path) -> None:
    for step in range(3):
        killed(lambda disk, n=step: put(disk, tmp_path / "deep" / str(n)), step)  # type: ignore[misc]
    assert list(tmp_path.rglob(f"{TEMPORARY}*"))
    finished = {name for name in everything_in(tmp_path) if TEMPORARY not in name}
    sweep(tmp_path)
    assert set(everything_in(tmp_path)) == finished == {"deep/2"}
