"""A standby pulls what is new, and whatever goes wrong on the way, its query can go on from where it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.builders import everything_in
from tests.unit.test_shipping import Slice

from understudy.checkpoints.spark_files import RECENT, committed, forget_last_commit, last_batch


@pytest.fixture
def slice_(tmp_path: Path) -> Slice:
    made = Slice(tmp_path)
    made.advance(4)
    return made


class Standby:
    def __init__(self, primary: Slice, directory: Path) -> None:
        self.primary, self.directory = primary, directory
        marker, self.held = primary.store().restore(directory, None)
        assert marker is not None
        self.epoch = marker.epoch

    def pull(self) -> int | None:
        """The bytes that were copied, None if nothing was pulled."""
        found = self.primary.store().pull(self.directory, self.held, self.epoch)
        if found is None:
            return None
        marker, size = found
        here = committed(self.directory)
        assert here is not None
        assert (here.epoch, here.batch) == (marker.epoch, last_batch(marker))
        self.epoch = marker.epoch
        return size

    def logs(self) -> dict[str, bytes]:
        return {n: c for n, c in everything_in(self.directory).items() if n.startswith(("offsets/", "commits/"))}


def test_a_standby_gets_what_the_primary_shipped_and_only_what_is_new(tmp_path: Path, slice_: Slice) -> None:
    standby = Standby(slice_, tmp_path / "standby")
    assert standby.pull() is None, "nothing new"
    whole = sum(len(content) for content in everything_in(standby.directory).values())
    for _ in range(5):
        needed = slice_.advance(1)
        copied = standby.pull()
        assert copied is not None
        assert 0 < copied < whole
        here = everything_in(standby.directory)
        assert {name: here.get(name) for name in needed if name != "metadata"} == {
            name: content for name, content in needed.items() if name != "metadata"
        }


@pytest.mark.parametrize("away", [1, 7, RECENT])
def test_a_standby_that_was_away_gets_all_changes_even_if_snapshots_cover_them(
    tmp_path: Path, slice_: Slice, away: int
) -> None:
    """It holds the state of long ago in memory, and it takes every changelog after that to follow."""
    standby = Standby(slice_, tmp_path / "standby")
    for _ in range(2):
        before = changes_in(standby.directory)
        for _ in range(away):
            slice_.advance(1)
        assert standby.pull() is not None
        version = standby.epoch + 1
        assert changes_in(standby.directory) - before == set(range(version - away + 1, version + 1))


def test_one_that_was_away_for_longer_gets_what_it_takes_to_load_the_state(tmp_path: Path, slice_: Slice) -> None:
    standby = Standby(slice_, tmp_path / "standby")
    for _ in range(RECENT + 1):
        needed = slice_.advance(1)
    assert standby.pull() is not None
    assert len(changes_in(standby.directory)) >= RECENT
    here = everything_in(standby.directory)
    assert all(here[name] == content for name, content in needed.items() if name != "metadata")


def test_changes_that_were_applied_are_not_pulled_again_when_spark_forgot_them(tmp_path: Path, slice_: Slice) -> None:
    standby = Standby(slice_, tmp_path / "standby")
    for _ in range(6):
        slice_.advance(1)
        assert standby.pull() is not None
    for path in (standby.directory / "state").rglob("[1-7].*"):
        path.unlink()
    slice_.advance(1)
    assert standby.pull() is not None
    assert not changes_in(standby.directory) & set(range(1, 8))


def changes_in(directory: Path) -> set[int]:
    return {int(path.stem) for path in (directory / "state").rglob("*.changelog")}


def test_the_identity_of_the_standby_stays_its_own(tmp_path: Path, slice_: Slice) -> None:
    standby = Standby(slice_, tmp_path / "standby")
    (standby.directory / "metadata").write_text("mine")
    slice_.advance(1)
    assert standby.pull() is not None
    assert (standby.directory / "metadata").read_text() == "mine"


@pytest.mark.parametrize("kind", ["state", "offsets", "commits"])
@pytest.mark.parametrize("damage", ["missing", "flipped"])
def test_half_of_a_checkpoint_leaves_the_query_where_it_was(
    tmp_path: Path, slice_: Slice, kind: str, damage: str
) -> None:
    standby = Standby(slice_, tmp_path / "standby")
    before = standby.logs()
    slice_.advance(1)
    marker = slice_.store().markers()[0]
    victims = [e for e in marker.files if e.name.startswith(kind) and e.name not in everything_in(standby.directory)]
    victim = slice_.root / "counts" / "0" / victims[-1].stored
    content = victim.read_bytes()
    # Files may be links that other checkpoints share, so a damaged one is a new file.
    victim.unlink()
    if damage == "flipped":
        victim.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert standby.pull() is None
    assert standby.logs() == before
    slice_.advance(1)
    assert standby.pull() is not None, "the next one is whole"


def test_a_query_without_its_last_commit_runs_that_batch_again(tmp_path: Path, slice_: Slice) -> None:
    standby = Standby(slice_, tmp_path / "standby")
    assert forget_last_commit(standby.directory) == 3
    here = committed(standby.directory)
    assert here is not None
    assert here.epoch == 2
    assert (standby.directory / "offsets" / "3").exists()
    assert forget_last_commit(tmp_path / "nothing") is None
