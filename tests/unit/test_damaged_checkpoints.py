"""A checkpoint that was found damaged no longer counts, its files are not linked again, and its slice says so."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests.builders import COUNTS, count_steps, everything_in, interrupted
from tests.simulated.cluster import Cluster
from tests.unit.test_shipping import EVERYTHING, Slice, damage, own_files

from understudy.errors import Unavailable


@pytest.fixture
def slice_(tmp_path: Path) -> Slice:
    """Checkpoints of epochs 2 and 3; both have the snapshot of epoch 2, which is one file with two names."""
    made = Slice(tmp_path)
    made.advance(3)
    made.advance(1)
    return made


def shared(slice_: Slice) -> Path:
    """The file that the two newest checkpoints share."""
    newest, older = ({entry.name: entry.stored for entry in marker.files} for marker in slice_.store().markers()[:2])
    root = slice_.root / "counts" / "0"
    found = root / newest["state/0/0/3.zip"]
    assert found.samefile(root / older["state/0/0/3.zip"])
    return found


def test_whoever_restores_hears_of_every_damaged_one(tmp_path: Path, slice_: Slice) -> None:
    heard: list[tuple[int, str]] = []
    victim = own_files(slice_, 3)[0]
    damage(victim, "flip")
    marker, _ = slice_.store().restore(tmp_path / "b", None, on_damaged=lambda *told: heard.append(told))
    assert marker is not None
    assert marker.epoch == 2
    assert heard == [(3, f"{victim.relative_to(slice_.root / 'counts' / '0')} is damaged")]
    slice_.store().restore(tmp_path / "c", None, on_damaged=lambda *told: heard.append(told))
    assert len(heard) == 1, "it is not looked at again"


@pytest.mark.parametrize("what", ["file", "marker"])
def test_it_no_longer_counts(tmp_path: Path, slice_: Slice, what: str) -> None:
    """The successor ships the same epoch again, so that the two newest checkpoints are whole again."""
    damage(own_files(slice_, 3)[0] if what == "file" else slice_.root / "counts/0/markers/0000000003-1.json", "flip")
    new = Slice.taking_over(slice_, "b")
    assert new.store().newest() == 2
    assert new.store().acknowledged(EVERYTHING) == -1, "no other one is left, should this one be damaged"
    contents = {3: new.advance(1), 4: new.advance(1)}
    assert new.store().acknowledged(EVERYTHING) == 3
    for before, epoch in ((None, 4), (4, 3)):
        marker = new.restore(tmp_path / str(before), before)
        assert marker is not None
        assert (marker.epoch, marker.generation) == (epoch, 2)
        assert everything_in(tmp_path / str(before)) == contents[epoch]


def test_the_damaged_file_of_a_checkpoint_is_copied_anew(tmp_path: Path, slice_: Slice) -> None:
    """A secondary found it; the primary works on and has the file as it should be."""
    victim = own_files(slice_, 3)[0]
    damage(victim, "flip")
    assert slice_.restore(tmp_path / "b") is not None
    wanted = slice_.advance(1)
    marker = slice_.restore(tmp_path / "c")
    assert marker is not None
    assert marker.epoch == 4
    assert everything_in(tmp_path / "c") == wanted


def test_one_that_could_not_be_pulled_no_longer_counts(tmp_path: Path, slice_: Slice) -> None:
    heard: list[tuple[int, str]] = []
    marker, shipped = slice_.store().restore(tmp_path / "b", before=3)
    assert marker is not None
    damage(own_files(slice_, 3)[-1], "flip")
    assert slice_.store().pull(tmp_path / "b", shipped, 2, on_damaged=lambda *told: heard.append(told)) is None
    assert [epoch for epoch, _ in heard] == [3]
    assert slice_.store().newest() == 2


def test_damage_to_a_file_that_both_share_reaches_back_to_one_that_does_not(tmp_path: Path) -> None:
    """An unchanged file is one copy under several names. Only a checkpoint without it is of use then."""
    slice_, released = Slice(tmp_path), 1
    wanted = {}
    for more in (2, 1, 1):
        slice_.query.run(more)
        checkpoint = slice_.query.committed()
        slice_.store().ship(checkpoint, checkpoint.epoch, 1, slice_.shipped)
        slice_.store().recycle(released)
        wanted[checkpoint.epoch] = slice_.query.needed()
    damage(shared(slice_), "flip")
    marker = slice_.restore(tmp_path / "b")
    assert marker is not None
    assert marker.epoch == 1, "the base, which was kept because a reader is not further"
    assert everything_in(tmp_path / "b") == wanted[1]


def test_if_no_other_is_left_the_error_names_the_file_and_nothing_is_moved(tmp_path: Path, slice_: Slice) -> None:
    victim = shared(slice_)
    content = victim.read_bytes()
    damage(victim, "flip")
    for _ in range(2):
        with pytest.raises(Unavailable) as raised:
            slice_.restore(tmp_path / "b")
        assert raised.value.why.count("state/0/0/3.zip is damaged") == 2
    victim.write_bytes(content)
    marker = slice_.restore(tmp_path / "b")
    assert marker is not None
    assert marker.epoch == 3, "the file was put back, as the error says"


def test_after_two_damaged_ones_nothing_starts_from_the_first_epoch(tmp_path: Path, slice_: Slice) -> None:
    damage(own_files(slice_, 3)[0], "flip")
    assert slice_.restore(tmp_path / "b") is not None
    damage(slice_.root / "counts/0/files/1-2/commits/2", "flip")
    with pytest.raises(Unavailable, match=r"0000000003-1\.json"):
        slice_.restore(tmp_path / "c")


def test_interrupted_anywhere_a_fall_back_can_be_repeated(tmp_path: Path) -> None:
    def damaged(place: Path) -> Slice:
        made = Slice(place)
        made.advance(3)
        made.advance(1)
        damage(own_files(made, 3)[0], "flip")
        return made

    first = damaged(tmp_path / "count")
    steps = count_steps(lambda disk: first.restore(tmp_path / "count" / "b", disk=disk))
    for step in range(steps):
        one = damaged(tmp_path / str(step))
        assert interrupted(lambda disk, one=one: one.restore(one.local.with_name("b"), disk=disk), step)  # type: ignore[misc]
        marker = one.restore(one.local.with_name("c"))
        assert marker is not None
        assert marker.epoch == 2
        assert [left.epoch for left in one.store().markers()] == [2]


def test_set_aside_markers_go_when_nobody_can_ask_for_them(tmp_path: Path, slice_: Slice) -> None:
    damage(own_files(slice_, 3)[0], "flip")
    new = Slice.taking_over(slice_, "b")
    aside = slice_.root / "counts/0/damaged"
    assert [path.name for path in aside.iterdir()] == ["0000000003-1.json"]
    new.advance(1)
    new.advance(1)
    assert list(aside.iterdir()), "a restore from before epoch 3 would still want to know"
    new.advance(1)
    assert list(aside.iterdir()) == []


def test_the_slice_and_the_manager_say_so_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(tmp_path)
    cluster.until(lambda: cluster.delivered > 10)
    cluster.world.stores[COUNTS].damage_newest()
    with caplog.at_level(logging.WARNING):
        cluster.fail(COUNTS)
        cluster.steps(2.0)
    cluster.restart_manager()
    cluster.steps(2.0)
    assert [one for one in caplog.messages if "the checkpoint of epoch 9 is damaged" in one]
    (event,) = [event for event in cluster.manager.events() if event.kind == "checkpoint_damaged"]
    assert event.fields["slice"] == "counts[0]"
    assert event.fields["epoch"] == 9
