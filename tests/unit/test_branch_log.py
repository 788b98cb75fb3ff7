"""The log of a branch: stable bags first, the branch's own next, nothing of what is missing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from understudy.log import bag
from understudy.log.bag import Bag
from understudy.log.branch_log import BranchLog, Missing
from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.model.layout import Channel, Split
from understudy.model.names import SliceId

SOURCE, A, B = SliceId("lines", 0), SliceId("counts", 0), SliceId("counts", 1)
WHOLE = Split()


def made(slice_id: SliceId, epoch: int, *numbers: int) -> Bag:
    return bag.make(slice_id, epoch, pa.table({"n": pa.array(numbers, pa.int64())}), ())


def empty(slice_id: SliceId, epoch: int) -> Bag:
    return bag.make(slice_id, epoch, pa.table({"n": pa.array([], pa.int64())}), (), (str(slice_id),))


class Logs:
    def __init__(self, root: Path) -> None:
        self.stable, self.own = FileLog(root / "log", Disk()), FileLog(root / "branches" / "1", Disk())
        self.missing = Missing([B])
        self.branch = BranchLog(self.stable, self.own, self.missing, [SOURCE], empty)

    def rows(self, slice_id: SliceId, epoch: int) -> list[int]:
        stored = self.branch.fetch(slice_id, epoch)
        assert stored is not None
        channel = Channel(0, slice_id, WHOLE, 0)
        return list(stored.rows(channel, pa.schema({"n": pa.int64()})).column("n").to_pylist())


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path)


def test_a_stable_bag_is_read_where_it_exists(logs: Logs) -> None:
    logs.branch.publish(made(A, 4, 1), durable=False)
    logs.stable.publish(made(A, 4, 1, 2), durable=False)
    assert logs.rows(A, 4) == [1, 2]


def test_what_a_fork_publishes_stays_in_the_branch(logs: Logs) -> None:
    assert logs.branch.publish(made(A, 4, 1), durable=True).first
    assert logs.stable.fetch(A, 4) is None
    assert logs.rows(A, 4) == [1]
    assert logs.branch.newest(A) == 4


def test_nothing_is_written_where_the_stable_bag_is_there(logs: Logs) -> None:
    logs.stable.publish(made(A, 4, 7), durable=False)
    assert not logs.branch.publish(made(A, 4, 7), durable=False).first
    assert logs.own.fetch(A, 4) is None


def test_a_missing_slice_has_an_empty_bag_once_a_source_has_published_the_epoch(logs: Logs) -> None:
    assert logs.branch.fetch(B, 3) is None
    assert not logs.branch.await_bags([B], 3, 0.0)
    logs.stable.publish(made(SOURCE, 3, 1), durable=False)
    assert logs.branch.await_bags([B], 3, 0.0)
    stored = logs.branch.fetch(B, 3)
    assert stored is not None
    assert (stored.header.lost, logs.rows(B, 3)) == (("counts[1]",), [])


def test_a_source_that_is_missing_itself_says_nothing_about_the_head(logs: Logs) -> None:
    logs.stable.publish(made(SOURCE, 3, 1), durable=False)
    logs.missing.slices = frozenset([B, SOURCE])
    assert logs.branch.fetch(B, 3) is None


def test_a_slice_that_is_back_is_waited_for(logs: Logs) -> None:
    logs.stable.publish(made(SOURCE, 3, 1), durable=False)
    logs.missing.slices = frozenset()
    assert not logs.branch.await_bags([B], 3, 0.0)
    logs.stable.publish(made(B, 3, 5), durable=False)
    assert logs.branch.await_bags([B], 3, 0.0)


def test_nobody_waits_for_a_missing_reader(logs: Logs) -> None:
    logs.stable.publish(made(SOURCE, 9, 1), durable=False)
    assert logs.branch.newest(B) == 9


def test_waiting_ends_when_the_bag_comes(logs: Logs) -> None:
    logs.branch.publish(made(A, 0, 1), durable=False)
    assert not logs.branch.await_bags([A], 1, 0.01)
    logs.branch.publish(made(A, 1, 1), durable=False)
    assert logs.branch.await_bags([A], 1, 0.01)


def test_forks_leave_the_stable_log_as_it_is(logs: Logs) -> None:
    logs.stable.publish(made(A, 0, 1), durable=False)
    logs.stable.publish(made(A, 1, 1), durable=False)
    logs.branch.acknowledge(B, A, 1)
    logs.branch.settle(A, 1)
    assert logs.branch.trim(A, [B]) == -1
    logs.branch.fence(A, 7)
    logs.branch.reach(SliceId("out", 0), 5)
    assert logs.stable.acknowledged(B, A) == -1
    assert (logs.stable.fenced(A), logs.branch.fenced(A)) == (0, 0)
    assert (logs.stable.reached(SliceId("out", 0)), logs.branch.reached(SliceId("out", 0))) == (-1, 5)
    assert logs.branch.delivered(SliceId("out", 0)) == -1
    assert logs.stable.first_missing(A) == 2
