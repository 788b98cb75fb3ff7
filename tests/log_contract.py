"""What every log promises, as tests: `TestFileLog` and the like inherit them and say how a log is opened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import pytest

from tests.builders import COUNTS, OTHER, WORDS, a_bag, rows_of
from understudy.log.interface import Log, Stored
from understudy.model.layout import Channel, Split

SLICES = (WORDS, COUNTS, OTHER)
WHOLE = Channel(0, WORDS, Split(), 0)
SCHEMA = rows_of().schema
PATIENCE_S = 60.0


class Logs(Protocol):
    """Opens one log again and again: each stands for another process."""

    def open(self) -> Log: ...


def numbers(stored: Stored | None) -> list[int]:
    assert stored is not None
    return [row["n"] for row in stored.rows(WHOLE, SCHEMA).to_pylist()]


def publish(log: Log, *epochs: int) -> None:
    for epoch in epochs:
        log.publish(a_bag(epoch), durable=False)


def there(log: Log, last: int = 20) -> list[int]:
    return [epoch for epoch in range(last) if log.fetch(WORDS, epoch) is not None]


def eventually(holds: Callable[[], bool]) -> bool:
    """Waits for what another process has written to be seen."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


class LogContract:
    """Needs a fixture `logs`."""

    # -- publishing

    def test_a_bag_is_read_as_it_was_published(self, logs: Logs) -> None:
        split = Split(("word",), 2)
        log, reader = logs.open(), logs.open()
        made = a_bag(0, rows_of(*range(50)), WORDS, split)
        published = log.publish(made, durable=False)
        assert published.first
        assert published.stored.header == made.header
        assert reader.await_bags([WORDS], 0, PATIENCE_S)
        for one in (log, reader):
            stored = one.fetch(WORDS, 0)
            assert stored is not None
            assert stored.header == made.header
            assert stored.path.read_bytes() == b"".join(bytes(part) for part in made.parts)
            parts = [stored.rows(Channel(0, WORDS, split, part), SCHEMA).to_pylist() for part in range(2)]
            assert sorted(row["n"] for part in parts for row in part) == list(range(50))

    def test_the_second_bag_of_an_epoch_does_not_count(self, logs: Logs) -> None:
        log, other = logs.open(), logs.open()
        assert log.publish(a_bag(3, rows_of(1)), durable=True).first
        for second in (log, other):
            published = second.publish(a_bag(3, rows_of(2)), durable=False)
            assert not published.first
            assert numbers(published.stored) == [1] == numbers(second.fetch(WORDS, 3))

    def test_of_writers_in_several_threads_one_wins_and_all_learn_who(self, logs: Logs) -> None:
        opened = [logs.open() for _ in range(3)]
        start = threading.Barrier(6)

        def race(writer: int) -> list[tuple[bool, int, Any]]:
            log = opened[writer % 3]
            start.wait(PATIENCE_S)
            told = []
            for epoch in range(5):
                published = log.publish(a_bag(epoch, rows_of(*[writer] * 300)), durable=False)
                rows = numbers(log.fetch(WORDS, epoch))
                assert len(rows) == 300
                told.append((published.first, rows[0], log.record(WORDS, epoch, writer)))
            return told

        with ThreadPoolExecutor(6) as pool:
            told = list(pool.map(race, range(6)))
        for epoch, of_epoch in enumerate(zip(*told, strict=True)):
            assert sum(first for first, _, _ in of_epoch) == 1
            winner = next(writer for writer, (first, _, _) in enumerate(of_epoch) if first)
            assert {row for _, row, _ in of_epoch} == {winner}
            assert len({cut for _, _, cut in of_epoch}) == 1
            assert {log.recorded(WORDS, epoch) for log in opened} == {of_epoch[0][2]}

    @pytest.mark.parametrize("rows", [0, 1, 40_000, 300_000])
    def test_bags_of_any_size(self, logs: Logs, rows: int) -> None:
        log, reader = logs.open(), logs.open()
        made = a_bag(0, rows_of(*range(rows)))
        assert log.publish(made, durable=False).first
        assert reader.await_bags([WORDS], 0, PATIENCE_S)
        stored = reader.fetch(WORDS, 0)
        assert stored is not None
        assert stored.path.stat().st_size == made.size
        assert numbers(stored) == list(range(rows))

    def test_a_log_that_is_opened_again_holds_what_it_held(self, logs: Logs) -> None:
        log = logs.open()
        publish(log, *range(4))
        log.acknowledge(COUNTS, WORDS, 1)
        log.reach(OTHER, 7)
        log.fence(WORDS, 3)
        log.record(WORDS, 0, "cut")
        log.mark(WORDS, 2, "here")
        log.trim(WORDS, [COUNTS])
        log.close()
        again = logs.open()
        assert there(again) == [2, 3]
        assert numbers(again.fetch(WORDS, 3)) == [3]
        assert (again.newest(WORDS), again.first_missing(WORDS)) == (3, 4)
        assert (again.acknowledged(COUNTS, WORDS), again.reached(OTHER), again.fenced(WORDS)) == (1, 7, 3)
        assert (again.recorded(WORDS, 0), again.bookmark(WORDS, 9)) == ("cut", "here")
        publish(again, 4)
        assert again.newest(WORDS) == 4

    def test_many_epochs_of_a_run_that_is_trimmed(self, logs: Logs) -> None:
        log, reader = logs.open(), logs.open()
        for epoch in range(60):
            publish(log, epoch)
            assert reader.await_bags([WORDS], epoch, PATIENCE_S)
            assert numbers(reader.fetch(WORDS, epoch)) == [epoch]
            reader.acknowledge(COUNTS, WORDS, epoch)
            if epoch % 7 == 6:
                assert eventually(lambda epoch=epoch: log.floor(WORDS, [COUNTS]) == epoch)  # type: ignore[misc]
                log.trim(WORDS, [COUNTS])
        assert log.newest(WORDS) == 59
        assert eventually(lambda: there(reader, 60)[0] == there(log, 60)[0] == 55)
        late = logs.open()
        assert there(late, 60) == [55, 56, 57, 58, 59]
        assert late.first_missing(WORDS, late.floor(WORDS, [COUNTS])) == 60

    # -- waiting

    def test_a_publisher_wakes_who_waits(self, logs: Logs) -> None:
        log, reader = logs.open(), logs.open()
        publish(log, 0)
        assert reader.await_bags([WORDS], 0, PATIENCE_S)
        assert not reader.await_bags([WORDS, COUNTS], 0, 0.02)
        assert reader.await_bags([], 5, 0.0)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(reader.await_bags, [WORDS, COUNTS], 0, PATIENCE_S)
            log.publish(a_bag(0, None, COUNTS), durable=False)
            assert waiting.result(PATIENCE_S)

    @pytest.mark.parametrize(("epochs", "missing"), [((), 0), ((0,), 1), ((0, 1, 3), 2), ((7, 8), 9), ((7, 9), 8)])
    def test_the_first_missing_epoch(self, logs: Logs, epochs: tuple[int, ...], missing: int) -> None:
        log = logs.open()
        publish(log, *epochs)
        assert log.first_missing(WORDS) == missing
        assert log.first_missing(WORDS, 11) == 12
        assert log.newest(WORDS) == max(epochs, default=-1)
        assert there(log) == list(epochs)
        assert log.fetch(COUNTS, 0) is None

    # -- progress, acknowledging, trimming

    def test_how_far_a_sink_has_come(self, logs: Logs) -> None:
        log, other = logs.open(), logs.open()
        assert log.reached(COUNTS) == -1
        for epoch in (0, 5, 3):
            log.reach(COUNTS, epoch)
            assert log.reached(COUNTS) == epoch, "a sink that was set back says so"
        assert eventually(lambda: other.reached(COUNTS) == 3)
        other.reach(COUNTS, 1)
        assert eventually(lambda: log.reached(COUNTS) == 1), "whoever writes last is right"
        log.reach(COUNTS, 3)
        assert eventually(lambda: other.reached(COUNTS) == 3)
        assert log.newest(COUNTS) == -1

    @pytest.mark.parametrize(
        ("acknowledged", "left"),
        [
            ({}, [0, 1, 2, 3, 4]),
            ({COUNTS: 3}, [0, 1, 2, 3, 4]),
            ({COUNTS: 3, OTHER: 1}, [2, 3, 4]),
            ({COUNTS: 9, OTHER: 9}, [4]),
        ],
    )
    def test_only_what_every_reader_has_acknowledged_is_trimmed(
        self, logs: Logs, acknowledged: dict[Any, int], left: list[int]
    ) -> None:
        log, other = logs.open(), logs.open()
        publish(log, *range(5))
        for reader, epoch in acknowledged.items():
            log.acknowledge(reader, WORDS, epoch)
        assert log.trim(WORDS, [COUNTS, OTHER]) == left[0] - 1
        assert there(log) == left
        assert eventually(lambda: there(other) == left)
        assert there(logs.open()) == left
        assert (log.newest(WORDS), log.first_missing(WORDS)) == (4, 5)

    def test_who_has_no_readers_keeps_its_newest_bag(self, logs: Logs) -> None:
        log = logs.open()
        publish(log, 0, 1, 2)
        assert log.trim(WORDS, []) == 1
        assert there(log) == [2] == [log.newest(WORDS)]
        assert log.trim(WORDS, []) == -1

    def test_an_acknowledgement_never_goes_back(self, logs: Logs) -> None:
        log = logs.open()
        publish(log, *range(4))
        log.acknowledge(COUNTS, WORDS, 2)
        log.acknowledge(COUNTS, WORDS, 0)
        assert log.floor(WORDS, [COUNTS]) == 2
        assert log.floor(WORDS, [COUNTS, OTHER]) == -1
        assert log.floor(WORDS, []) == 3
        assert log.trim(WORDS, [COUNTS]) == 2

    def test_a_bag_published_after_it_was_trimmed_is_of_no_consequence(self, logs: Logs) -> None:
        """A zombie may publish what everybody has forgotten."""
        log = logs.open()
        publish(log, *range(4))
        log.acknowledge(COUNTS, WORDS, 2)
        log.trim(WORDS, [COUNTS])
        publish(log, 0)
        assert log.newest(WORDS) == 3
        log.trim(WORDS, [COUNTS])
        assert there(log) == [3]

    # -- cuts and bookmarks

    @pytest.mark.parametrize("value", [0, None, "x", {"offset": [1, 2]}, 12.5])
    def test_the_first_record_counts(self, logs: Logs, value: Any) -> None:
        log, other = logs.open(), logs.open()
        assert log.recorded(WORDS, 3) is None
        assert log.record(WORDS, 3, value) == value
        assert other.record(WORDS, 3, "other") == value
        assert log.record(WORDS, 3, "other") == value
        assert log.recorded(WORDS, 3) == other.recorded(WORDS, 3) == value

    def test_cuts_are_trimmed_to_the_floor_of_all_slices_that_share_them(self, logs: Logs) -> None:
        log = logs.open()
        assert log.cuts(WORDS) == range(0)
        for epoch in range(4):
            log.record(WORDS, epoch, epoch * 10)
        shared = {WORDS: [COUNTS], OTHER: [COUNTS]}
        log.acknowledge(COUNTS, WORDS, 9)
        log.trim_cuts(WORDS, shared)
        assert log.cuts(WORDS) == range(4), "the other slice's reader has acknowledged nothing"
        log.acknowledge(COUNTS, OTHER, 2)
        log.trim_cuts(WORDS, shared)
        assert log.cuts(WORDS) == range(2, 4)
        assert [log.recorded(WORDS, epoch) for epoch in range(4)] == [None, None, 20, 30]
        log.acknowledge(COUNTS, OTHER, 9)
        log.trim_cuts(WORDS, shared)
        assert log.cuts(WORDS) == range(3, 4), "the newest stays"
        assert logs.open().cuts(WORDS) == range(3, 4)

    def test_a_cut_below_a_hole_does_not_count(self, logs: Logs) -> None:
        log = logs.open()
        for epoch in (0, 3, 4):
            log.record(WORDS, epoch, epoch)
        assert log.cuts(WORDS) == range(3, 5)

    def test_bookmarks_are_kept_while_they_are_needed(self, logs: Logs) -> None:
        log = logs.open()
        publish(log, *range(8))
        assert log.bookmark(WORDS, 5) is None
        for epoch in (1, 3, 5):
            log.mark(WORDS, epoch, {"at": epoch})
        assert [log.bookmark(WORDS, epoch) for epoch in (0, 1, 4, 9)] == [None, {"at": 1}, {"at": 3}, {"at": 5}]
        log.acknowledge(COUNTS, WORDS, 4)
        log.trim(WORDS, [COUNTS])
        assert [log.bookmark(WORDS, epoch) for epoch in (2, 4, 9)] == [None, {"at": 3}, {"at": 5}]

    # -- fences, durability, damage

    def test_fences_only_rise(self, logs: Logs) -> None:
        log, other = logs.open(), logs.open()
        assert log.fenced(WORDS) == 0
        for generation in (2, 5, 3, 5):
            log.fence(WORDS, generation)
        assert (log.fenced(WORDS), log.fenced(COUNTS)) == (5, 0)
        assert log.newest(WORDS) == -1, "a fence is no bag"
        assert eventually(lambda: other.fenced(WORDS) == 5)

    def test_whoever_has_fenced_knows_all_that_was_published_before(self, logs: Logs) -> None:
        log, successor = logs.open(), logs.open()
        publish(log, *range(6))
        successor.fence(WORDS, 2)
        assert successor.newest(WORDS) == 5

    def test_settling_takes_any_epoch(self, logs: Logs) -> None:
        log, other = logs.open(), logs.open()
        publish(log, 0, 1)
        for one in (log, other):
            one.settle(WORDS, 1)
            one.settle(WORDS, 99)
            one.settle(COUNTS, 3)
        assert there(log) == [0, 1]

    def test_an_intact_bag_is_neither_damaged_nor_set_aside(self, logs: Logs) -> None:
        log = logs.open()
        publish(log, 2, 3)
        assert log.damaged(WORDS, 0) == []
        for epoch in (2, 3, 9):
            log.set_aside(WORDS, epoch)
        assert there(log) == [2, 3]

    def test_a_damaged_file_is_mended_or_made_again(self, logs: Logs) -> None:
        """Where the file was the only copy its slice makes the bag again; where the log has more, it is read again."""
        log = logs.open()
        publish(log, 2, 3, 4)
        stored = log.fetch(WORDS, 3)
        assert stored is not None
        content = bytearray(stored.path.read_bytes())
        content[-1] ^= 1
        stored.path.write_bytes(content)
        for epoch in log.damaged(WORDS, 0):
            assert epoch == 3
            log.set_aside(WORDS, epoch)
            assert log.fetch(WORDS, epoch) is None
            publish(log, epoch)
        assert [numbers(log.fetch(WORDS, epoch)) for epoch in (2, 3, 4)] == [[2], [3], [4]]
        assert log.damaged(WORDS, 0) == []
