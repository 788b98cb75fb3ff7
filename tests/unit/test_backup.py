"""A backup is whole or not there, and the home that is made of it goes on where the run stopped."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import sqlite3
import tarfile
from contextlib import closing
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pytest
from tests.simulated.topologies import word_count
from typer.testing import CliRunner

from understudy.cli.main import app
from understudy.coordination.sqlite import SqliteStore
from understudy.errors import InvalidInput, Unavailable
from understudy.log import bag
from understudy.log.disk import Disk
from understudy.log.file_log import FileLog
from understudy.model.layout import Split
from understudy.model.names import SliceId
from understudy.model.run import RunSpec
from understudy.model.snapshot import Assignment
from understudy.runtime.backup import back_up, belongs, restore
from understudy.runtime.backup_file import MANIFEST, verify
from understudy.runtime.home import Home
from understudy.runtime.prepare import prepare, reopen

COUNTS = SliceId("counts", 0)
SECRET = "the-token-of-the-run"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """As a killed run leaves it: the newest facts are in SQLite's write-ahead log, and files have several names."""
    place = Home(tmp_path / "home")
    prepare(place, RunSpec.of("r", "app.py", nodes=2))
    log = FileLog(place.log, Disk())
    for epoch in range(3):
        rows = pa.table({"word": ["a", "b"], "n": [epoch, epoch]})
        made = bag.make(COUNTS, epoch, rows, (Split(("word",), 2),))
        log.publish(made, durable=True)
    first = place.path / "checkpoints" / "counts" / "0" / "files" / "1-2" / "3.changelog"
    first.parent.mkdir(parents=True)
    first.write_bytes(os.urandom(2000))
    second = place.path / "checkpoints" / "counts" / "0" / "files" / "1-5" / "3.changelog"
    second.parent.mkdir(parents=True)
    second.hardlink_to(first)
    (place.path / "out").mkdir()
    (place.path / "out" / "part").write_text("rows")
    (place.path / "token").write_text(SECRET)
    for name in ("nodes/node-1/state", "branches/1/bag", "log/.tmp-bag-12"):
        (place.path / name).parent.mkdir(parents=True, exist_ok=True)
        (place.path / name).write_text("temporary")
    return place


def content(root: Path) -> dict[str, bytes]:
    """What must survive: every file but the database and what belongs to a running home."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and belongs(path.relative_to(root))
    }


def facts(root: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(root / "manager.db")) as database:
        return database.execute("SELECT * FROM facts ORDER BY name").fetchall()


@pytest.mark.parametrize("name", ["b.tar", "b.tar.gz", "b.tgz"])
def test_a_restored_home_holds_what_the_home_held(home: Home, tmp_path: Path, name: str) -> None:
    made = back_up(home, tmp_path / name)
    again = Home(tmp_path / "elsewhere" / "again")
    assert restore(tmp_path / name, again) == made == verify(tmp_path / name)
    assert content(again.path) == content(home.path)
    assert facts(again.path) == facts(home.path)
    assert again.stored() == home.stored()
    assert not {"nodes", "branches", "token", "lock"} & {path.name for path in again.path.iterdir()}
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600, "settings in it may be secret"


def test_what_sqlite_has_not_moved_into_its_file_is_in_the_backup(home: Home, tmp_path: Path) -> None:
    killed = SqliteStore(home.database)
    killed.keep({"phase": "running"})
    assert (home.path / "manager.db-wal").stat().st_size > 0
    back_up(home, tmp_path / "b.tar")
    restore(tmp_path / "b.tar", Home(tmp_path / "again"))
    assert ("phase", '"running"') in facts(tmp_path / "again")
    killed.close()


def test_a_restored_home_is_reopened_as_the_home_itself_would_be(home: Home, tmp_path: Path) -> None:
    """What `--resume` reads: the options, the fingerprint, the assignments, the bags."""
    store = SqliteStore(home.database)
    store.assign(Assignment(COUNTS, "node-1", 4))
    store.close()
    back_up(home, tmp_path / "b.tar")
    again = Home(tmp_path / "again")
    restore(tmp_path / "b.tar", again)
    spec, found = again.stored(), []
    for place in (home, again):
        reopen(place, spec, word_count(None))
        reopened = SqliteStore(place.database)
        found.append((reopened.assignments(), facts(place.path)))
        reopened.close()
    assert found[0] == found[1]
    assert found[0][0][0].generation >= 4
    log = FileLog(again.log, Disk())
    stored = [log.fetch(COUNTS, epoch) for epoch in range(3)]
    assert [one.header.epoch for one in stored if one is not None] == [0, 1, 2]
    assert again.token() != SECRET


def test_a_file_with_two_names_is_stored_once_and_has_two_names_again(home: Home, tmp_path: Path) -> None:
    back_up(home, tmp_path / "b.tar")
    with tarfile.open(tmp_path / "b.tar") as tar:
        links = [member for member in tar if member.islnk()]
    assert len(links) == 1
    restore(tmp_path / "b.tar", Home(tmp_path / "again"))
    one, two = sorted((tmp_path / "again").rglob("3.changelog"))
    assert one.samefile(two)


def test_a_backup_holds_no_token(home: Home, tmp_path: Path) -> None:
    back_up(home, tmp_path / "b.tar.gz")
    assert SECRET.encode() not in gzip.decompress((tmp_path / "b.tar.gz").read_bytes())


# -- refused


def test_a_home_that_runs_is_refused(home: Home, tmp_path: Path) -> None:
    with home.lock(), pytest.raises(InvalidInput, match="in use") as error:
        back_up(home, tmp_path / "b.tar")
    assert "--resume" in error.value.fix
    back_up(home, tmp_path / "b.tar")


def test_a_node_that_outlived_its_run_is_named(home: Home, tmp_path: Path) -> None:
    with home.hold_node("node-7"), pytest.raises(InvalidInput, match="in use") as error:
        back_up(home, tmp_path / "b.tar")
    assert "node-7" in error.value.why


def test_no_run_can_begin_while_a_backup_is_made(home: Home, tmp_path: Path) -> None:
    seen = []

    def look(_: str) -> None:
        with (home.path / "lock").open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                seen.append("held")

    back_up(home, tmp_path / "b.tar", Disk(look))
    assert seen == ["held"] * 3


def test_what_cannot_be_backed_up_is_refused(home: Home, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="holds no run"):
        back_up(Home(tmp_path / "nothing"), tmp_path / "b.tar")
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(InvalidInput, match="in the home itself"):
        back_up(home, home.path / "b.tar")
    with pytest.raises(InvalidInput, match="cannot be a backup"):
        back_up(home, tmp_path / "b.zip")
    with pytest.raises(Unavailable, match="cannot be written"):
        back_up(home, tmp_path / "no" / "directory" / "b.tar")
    (tmp_path / "b.tar").write_text("mine")
    with pytest.raises(InvalidInput, match="there already"):
        back_up(home, tmp_path / "b.tar")
    (tmp_path / "elsewhere").mkdir()
    (home.path / "out" / "more").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match="symbolic link"):
        back_up(home, tmp_path / "c.tar")


def test_a_restore_never_overwrites(home: Home, tmp_path: Path) -> None:
    back_up(home, tmp_path / "b.tar")
    with pytest.raises(InvalidInput, match="not empty"):
        restore(tmp_path / "b.tar", home)
    (tmp_path / "empty").mkdir()
    restore(tmp_path / "b.tar", Home(tmp_path / "empty"))
    with pytest.raises(InvalidInput, match="cannot be read"):
        restore(tmp_path / "nowhere.tar", Home(tmp_path / "again"))


# -- damage


@pytest.mark.parametrize("name", ["b.tar", "b.tar.gz"])
def test_damage_anywhere_is_found_and_nothing_is_restored(home: Home, tmp_path: Path, name: str) -> None:
    back_up(home, tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    with tarfile.open(tmp_path / name) as tar:
        size = max(member.offset_data + member.size for member in tar)
    # Behind the last member there is only padding.
    end = min(size, len(whole) - 20) if name == "b.tar" else len(whole) - 8
    damages = {"cut": whole[: len(whole) // 2], "empty": b""}
    damages |= {f"byte {at}": whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :] for at in range(600, end, 2999)}
    for what, damaged in damages.items():
        broken = tmp_path / f"broken-{name}"
        broken.write_bytes(damaged)
        if refused(broken, tmp_path / "again"):
            assert not (tmp_path / "again").exists(), what
        else:
            # The byte was padding, or the time of a file.
            assert content(tmp_path / "again") == content(home.path), what
            (tmp_path / "again").rename(tmp_path / f"same-{what}")
        assert not list(tmp_path.glob(".tmp-*"))


def refused(file: Path, home: Path) -> bool:
    try:
        restore(file, Home(home))
    except InvalidInput:
        return True
    return False


def test_a_backup_that_leads_out_of_the_home_is_refused(home: Home, tmp_path: Path) -> None:
    back_up(home, tmp_path / "b.tar")
    for number, name in enumerate(["../escaped", "/tmp/escaped-from-a-backup"]):
        evil = tmp_path / f"evil-{number}.tar"
        with tarfile.open(tmp_path / "b.tar") as tar, tarfile.open(evil, "w") as out:
            info = tarfile.TarInfo(name)
            info.size = 1
            out.addfile(info, BytesIO(b"x"))
            for member in tar:
                out.addfile(member, tar.extractfile(member) if member.isreg() else None)
        with pytest.raises(InvalidInput, match="no whole backup"):
            restore(evil, Home(tmp_path / "again"))
        assert not (tmp_path / "again").exists()
    assert not (tmp_path / "escaped").exists()


def test_a_backup_of_a_later_format_says_so(home: Home, tmp_path: Path) -> None:
    back_up(home, tmp_path / "b.tar")
    with tarfile.open(tmp_path / "b.tar") as tar, tarfile.open(tmp_path / "later.tar", "w") as out:
        for member in tar:
            content = tar.extractfile(member) if member.isreg() else None
            if member.name == MANIFEST and content is not None:
                text = json.dumps(json.loads(content.read()) | {"format": 2}).encode()
                member.size, content = len(text), BytesIO(text)
            out.addfile(member, content)
    with pytest.raises(InvalidInput) as error:
        restore(tmp_path / "later.tar", Home(tmp_path / "again"))
    assert "format is 2" in error.value.why


class Interrupted(BaseException):
    """Stands for a kill: nobody handles it."""


def test_interrupted_after_any_step_there_is_all_or_nothing(home: Home, tmp_path: Path) -> None:
    before = content(home.path)

    def stop_at(wanted: str) -> Disk:
        def step(name: str) -> None:
            if name == wanted:
                raise Interrupted

        return Disk(step)

    for name in ("database copied", "written", "verified"):
        with pytest.raises(Interrupted):
            back_up(home, tmp_path / "b.tar", stop_at(name))
        assert not (tmp_path / "b.tar").exists()
        assert content(home.path) == before
    back_up(home, tmp_path / "b.tar")
    for name in ("unpacked", "verified"):
        with pytest.raises(Interrupted):
            restore(tmp_path / "b.tar", Home(tmp_path / "again"), stop_at(name))
        assert not (tmp_path / "again").exists()
    restore(tmp_path / "b.tar", Home(tmp_path / "again"))
    assert content(tmp_path / "again") == before


# -- the command line


def test_the_commands_say_what_they_did_and_how_to_go_on(home: Home, tmp_path: Path) -> None:
    file, again = tmp_path / "b.tar.gz", tmp_path / "again"
    said = CliRunner().invoke(app, ["backup", str(home.path), str(file)])
    assert said.exit_code == 0, said.output
    assert "run r, verified" in said.output
    said = CliRunner().invoke(app, ["restore", str(file), str(again)])
    assert f"understudy run app.py --home {again} --resume" in said.output
    said = CliRunner().invoke(app, ["restore", str(file), str(again)])
    assert said.exit_code == 2
    assert "fix:" in said.output


def test_a_log_elsewhere_is_mentioned(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    spec = RunSpec.of("r", "app.py", config={"log": {"url": "kafka://broker-1:9092/orders"}})
    prepare(home, spec)
    said = CliRunner().invoke(app, ["backup", str(home.path), str(tmp_path / "b.tar")])
    assert "kafka://broker-1:9092/orders and not in the backup" in said.output
    made = CliRunner().invoke(app, ["restore", str(tmp_path / "b.tar"), str(tmp_path / "again"), "--json"])
    assert json.loads(made.output)["outside"] == ["kafka://broker-1:9092/orders"]
