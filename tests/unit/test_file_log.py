"""The log: one bag per slice and epoch whoever writes, nothing trimmed that somebody needs."""

from __future__ import annotations

import json
import multiprocessing
import threading
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from tests.builders import COUNTS, OTHER, WORDS, a_bag, count_steps, everything_in, interrupted, killed, rows_of

from understudy.log.disk import TEMPORARY, Disk, sweep
from understudy.log.file_log import FileLog
from understudy.log.interface import Stored
from understudy.model.layout import Channel, Split

WHOLE = Channel(0, WORDS, Split(), 0)
SCHEMA = rows_of().schema
WRITERS, EPOCHS = 3, 8

Stop = Callable[[Callable[[Disk], object], int], bool]


def numbers(stored: Stored | None) -> list[int]:
    assert stored is not None
    return [row["n"] for row in stored.rows(WHOLE, SCHEMA).to_pylist()]


@pytest.fixture
def log(tmp_path: Path) -> FileLog:
    return FileLog(tmp_path, Disk())


def publish(log: FileLog, *epochs: int) -> None:
    for epoch in epochs:
        log.publish(a_bag(epoch), durable=False)


# -- several writers


def race(root: Path, writer: int, start: Barrier, answer: Path) -> None:
    """Publishes rows of its own for every epoch, and looks at what is there before and after."""
    log = FileLog(root, Disk())
    mine = rows_of(*[writer] * 2000)
    seen: list[tuple[int, bool, int, int]] = []
    start.wait(60)
    for epoch in range(EPOCHS):
        before = log.fetch(WORDS, epoch)
        published = log.publish(a_bag(epoch, mine), durable=bool(epoch % 2))
        cut = log.record(WORDS, epoch, {"writer": writer})
        rows = numbers(published.stored)
        assert len(rows) == 2000
        assert len(set(rows)) == 1
        assert before is None or numbers(before) == rows
        seen.append((epoch, published.first, rows[0], cut["writer"]))
    answer.write_text(json.dumps(seen))


def test_of_writers_in_several_processes_one_wins_and_all_learn_who(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start, root = context.Barrier(WRITERS), tmp_path / "log"
    answers = [tmp_path / str(n) for n in range(WRITERS)]
    children = [context.Process(target=race, args=(root, n, start, answers[n])) for n in range(WRITERS)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    told = [tuple(entry) for answer in answers for entry in json.loads(answer.read_text())]
    log = FileLog(root, Disk())
    for epoch in range(EPOCHS):
        own = [answer for answer in told if answer[0] == epoch]
        assert len(own) == WRITERS
        assert sum(first for _, first, _, _ in own) == 1
        assert {winner for _, _, winner, _ in own} == {numbers(log.fetch(WORDS, epoch))[0]}
        assert {cut for _, _, _, cut in own} == {log.recorded(WORDS, epoch)["writer"]}
    assert not list(root.rglob(f"{TEMPORARY}*"))


@pytest.mark.parametrize("stop", [interrupted, killed])
@pytest.mark.parametrize("durable", [True, False])
def test_publishing_can_be_interrupted_anywhere_and_repeated(tmp_path: Path, stop: Stop, durable: bool) -> None:
    mine, other = a_bag(0, rows_of(1, 2, 3)), a_bag(0, rows_of(4))
    steps = count_steps(lambda disk: FileLog(tmp_path / "count", disk).publish(mine, durable=durable))
    assert steps == (3 if durable else 2)
    for step in range(steps):
        root = tmp_path / str(step)
        assert stop(lambda disk, root=root: FileLog(root, disk).publish(mine, durable=durable), step)  # type: ignore[misc]
        log = FileLog(root, Disk())
        survivor = log.fetch(WORDS, 0)
        assert survivor is None or numbers(survivor) == [1, 2, 3]
        published = log.publish(other, durable=durable)
        assert published.first == (survivor is None)
        assert numbers(published.stored) == numbers(log.fetch(WORDS, 0)) == ([4] if survivor is None else [1, 2, 3])
        sweep(root)
        assert list(everything_in(root)) == ["words/0/0000000000.bag"]


def test_unfinished_files_are_no_bags(tmp_path: Path, log: FileLog) -> None:
    publish(log, 0)
    assert killed(lambda disk: FileLog(tmp_path, disk).publish(a_bag(5), durable=True), 0)
    assert log.newest(WORDS) == 0
    assert not log.await_bags([WORDS], 5, 0.0)


# -- damage


@pytest.mark.parametrize("content", [b"", b"USBAG1 0000000010 00000000\n", bytes(700)], ids=["empty", "cut", "zeros"])
def test_a_damaged_bag_is_replaced_by_the_next_who_makes_it(tmp_path: Path, log: FileLog, content: bytes) -> None:
    """After a power cut, the slice itself comes back first and finds what is left of its own bag."""
    publish(log, 0, 1)
    (tmp_path / "words/0/0000000001.bag").write_bytes(content)
    published = log.publish(a_bag(1), durable=False)
    assert published.first
    assert numbers(published.stored) == numbers(log.fetch(WORDS, 1)) == [1]
    assert [path.read_bytes() for path in (tmp_path / "damaged").iterdir()] == [content]


def damage(path: Path) -> None:
    """Flips the last byte, which no header covers."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_a_bag_that_was_made_again_stays(tmp_path: Path, log: FileLog) -> None:
    """A node that was frozen hears late that it shall make a bag again, which another one has done meanwhile."""
    publish(log, 3, 4)
    damage(tmp_path / "words/0/0000000004.bag")
    log.set_aside(WORDS, 4)
    publish(log, 4)
    log.set_aside(WORDS, 4)
    assert numbers(log.fetch(WORDS, 4)) == [4]
    assert len(list((tmp_path / "damaged").iterdir())) == 1


def test_all_damaged_bags_are_found_from_an_epoch_on(tmp_path: Path, log: FileLog) -> None:
    publish(log, 2, 3, 4, 5, 6)
    for epoch in (2, 4, 6):
        damage(tmp_path / f"words/0/{epoch:010d}.bag")
    assert log.damaged(WORDS, 3) == [4, 6]
    assert log.damaged(OTHER, 0) == []


def test_what_was_set_aside_is_missing_and_can_be_published_again(tmp_path: Path, log: FileLog) -> None:
    publish(log, 3, 4, 5)
    assert log.first_missing(WORDS) == 6
    damage(tmp_path / "words/0/0000000004.bag")
    log.set_aside(WORDS, 4)
    log.set_aside(WORDS, 4)
    assert log.fetch(WORDS, 4) is None
    assert log.first_missing(WORDS) == 4
    assert log.newest(WORDS) == 5
    assert len(list((tmp_path / "damaged").iterdir())) == 1
    publish(log, 4)
    assert log.first_missing(WORDS) == 6


def test_the_newest_is_found_without_listing_all_bags(log: FileLog, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(log, *range(5))
    looks = 0
    listed = FileLog._epochs

    def count(self: FileLog, slice_id: Any) -> set[int]:
        nonlocal looks
        looks += 1
        return listed(self, slice_id)

    monkeypatch.setattr(FileLog, "_epochs", count)
    for epoch in range(5, 10):
        assert log.newest(WORDS) == epoch - 1
        publish(log, epoch)
        assert log.newest(WORDS) == epoch
    assert looks == 1


def test_the_newest_after_the_known_one_was_trimmed(tmp_path: Path, log: FileLog) -> None:
    publish(log, 0, 1)
    assert log.newest(WORDS) == 1
    other = FileLog(tmp_path, Disk())
    publish(other, *range(2, 9))
    other.acknowledge(COUNTS, WORDS, 6)
    assert other.trim(WORDS, [COUNTS]) == 6
    assert log.newest(WORDS) == 8


# -- acknowledging and trimming


def test_an_acknowledgement_lost_to_a_power_cut_holds_bags_back(tmp_path: Path, log: FileLog) -> None:
    publish(log, *range(4))
    log.acknowledge(COUNTS, WORDS, 2)
    (tmp_path / "words/0/acks/counts[0]/0000000002").unlink()
    assert log.trim(WORDS, [COUNTS]) == -1


def test_trimming_keeps_one_acknowledgement_of_each_reader(tmp_path: Path, log: FileLog) -> None:
    publish(log, *range(4))
    for epoch in range(3):
        log.acknowledge(COUNTS, WORDS, epoch)
    log.trim(WORDS, [COUNTS, OTHER])
    assert [path.name for path in (tmp_path / "words/0/acks").rglob("0*")] == ["0000000002"]
    assert log.acknowledged(COUNTS, WORDS) == 2


def test_a_removed_cut_that_a_power_cut_brought_back_does_not_count(log: FileLog) -> None:
    for epoch in (0, 3, 4):
        log.record(WORDS, epoch, epoch)
    assert log.cuts(WORDS) == range(3, 5)


def test_the_floor_is_what_all_readers_have_acknowledged(log: FileLog) -> None:
    publish(log, *range(4))
    log.acknowledge(COUNTS, WORDS, 2)
    assert log.floor(WORDS, [COUNTS, OTHER]) == -1
    log.acknowledge(OTHER, WORDS, 1)
    assert log.floor(WORDS, [COUNTS, OTHER]) == 1
    assert log.floor(WORDS, []) == 3


def test_a_bag_published_again_after_it_was_trimmed_is_trimmed_again(log: FileLog) -> None:
    """A zombie may publish what everybody has forgotten."""
    publish(log, *range(4))
    log.acknowledge(COUNTS, WORDS, 2)
    log.trim(WORDS, [COUNTS])
    publish(log, 0)
    assert log.newest(WORDS) == 3
    log.trim(WORDS, [COUNTS])
    assert [epoch for epoch in range(4) if log.fetch(WORDS, epoch)] == [3]


# -- cuts, settling, waiting


@pytest.mark.parametrize("stop", [interrupted, killed])
@pytest.mark.parametrize("step", range(3))
def test_a_record_interrupted_is_whole_or_absent(tmp_path: Path, stop: Stop, step: int) -> None:
    assert stop(lambda disk: FileLog(tmp_path, disk).record(WORDS, 3, [1, 2]), step)
    log = FileLog(tmp_path, Disk())
    before = log.recorded(WORDS, 3)
    assert before in (None, [1, 2])
    assert log.record(WORDS, 3, [3]) == (before or [3])


def test_settling_syncs_each_bag_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    for name in ("sync", "sync_directory"):
        monkeypatch.setattr(Disk, name, lambda _, path: synced.append(path.name))
    log = FileLog(tmp_path, Disk())
    publish(log, 0, 1, 2)
    log.settle(WORDS, 1)
    assert synced == ["0000000000.bag", "0000000001.bag", "0"]
    synced.clear()
    log.settle(WORDS, 1)
    assert synced == []
    log.settle(WORDS, 2)
    assert synced == ["0000000002.bag", "0"]


def test_settling_includes_the_bags_of_a_predecessor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An active standby takes over: it never published these itself, and its next marker builds on them."""
    publish(FileLog(tmp_path, Disk()), 0, 1, 2)
    synced: list[str] = []
    for name in ("sync", "sync_directory"):
        monkeypatch.setattr(Disk, name, lambda _, path: synced.append(path.name))
    log = FileLog(tmp_path, Disk())
    publish(log, 3)
    log.settle(WORDS, 3)
    assert synced == [*(f"000000000{n}.bag" for n in range(4)), "0"]
    synced.clear()
    log.settle(WORDS, 3)
    assert synced == []


def test_settling_while_another_thread_publishes(tmp_path: Path) -> None:
    """The shipper settles beside the query; neither may trip over the other."""
    log = FileLog(tmp_path, Disk())
    failed: list[BaseException] = []
    done = threading.Event()

    def settle() -> None:
        try:
            while not done.is_set():
                log.settle(WORDS, 10**6)
        except BaseException as error:  # noqa: BLE001 - whatever it was fails the test
            failed.append(error)

    thread = threading.Thread(target=settle)
    thread.start()
    made = a_bag(0)
    for epoch in range(200):
        object.__setattr__(made.header, "epoch", epoch)
        log.publish(made, durable=False)
    done.set()
    thread.join()
    assert failed == []


def test_what_the_gate_is_told_fits_the_file(log: FileLog) -> None:
    """Spark reads the segments itself, by the numbers in these lines."""
    split = Split(("word",), 2)
    stored = log.publish(a_bag(0, rows_of(*range(50)), WORDS, split), durable=False).stored
    content = stored.path.read_bytes()
    rows = 0
    for part in range(2):
        for line in stored.lines(Channel(3, WORDS, split, part)):
            number, offset, length, count, _, path = line.split("\t")
            assert (number, path) == ("3", str(stored.path))
            assert content[int(offset) :][: int(length)].startswith(b"\xff\xff\xff\xff"), "an Arrow stream begins here"
            rows += int(count)
    assert rows == 50
    assert json.loads(content[27 : stored.start])["rows"] == 50
