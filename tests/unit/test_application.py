"""Applications, their settings, the home directory, the rhythm of a run."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from understudy import settings
from understudy.coordination.sqlite import SqliteStore
from understudy.errors import InvalidInput
from understudy.model.messages import ReplicaStatus
from understudy.model.names import SliceId
from understudy.model.run import Rhythm, RunSpec
from understudy.runtime.application import load
from understudy.runtime.home import Home
from understudy.runtime.ledger import Ledger

APP = """
import understudy as us
app = us.Topology("app")
app.source("lines", us.sources.Generator(print, "text string"), slices=us.setting("slices", 1))

@app.operator("lines")
def words(rows):
    return rows

app.sink("out", words, us.sinks.Parquet("out"))
"""


@pytest.fixture(autouse=True)
def tidy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]
    settings.give({})


def write(tmp_path: Path, text: str, name: str = "my_app.py") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_file_with_one_topology_is_an_application(tmp_path: Path) -> None:
    found = load(write(tmp_path, APP + "same = app\n"), {"slices": "3"})
    assert (found.name, found.sources[0].slices) == ("app", 3)
    assert found.operators[0].function.__module__ == "application_my_app"


def test_files_beside_it_can_be_imported(tmp_path: Path) -> None:
    write(tmp_path, "NAME = 'helped'", "my_helper.py")
    found = load(
        write(
            tmp_path,
            APP.replace('us.Topology("app")', "us.Topology(my_helper.NAME)").replace(
                "import understudy as us", "import understudy as us, my_helper"
            ),
            "odd name.py",
        )
    )
    assert found.name == "helped"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no topology"),
        (APP + "other = us.Topology('b')\n", "2 topologies"),
        (APP.replace("app.sink", "print"), "sink"),
    ],
)
def test_what_is_no_application(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(InvalidInput, match=what) as raised:
        load(write(tmp_path, text))
    assert raised.value.fix


@pytest.mark.parametrize("name", ["missing.py", ".", "notes.txt"])
def test_what_is_no_python_file(tmp_path: Path, name: str) -> None:
    write(tmp_path, "hello", "notes.txt")
    with pytest.raises(InvalidInput, match=r"Python file|not there"):
        load(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "default", "expected"),
    [
        ("5", 1, 5),
        ("0.5", 1.0, 0.5),
        ("2", 1.0, 2.0),
        ("a=b", "x", "a=b"),
        ("yes", False, True),
        ("0", True, False),
        ("False", True, False),
    ],
)
def test_a_setting_has_the_type_of_its_default(text: str, default: Any, expected: Any) -> None:
    settings.give({"name": text})
    found = settings.setting("name", default)
    assert (found, type(found)) == (expected, type(expected))
    assert settings.setting("other", default) == default
    settings.check_all_asked()


@pytest.mark.parametrize(("text", "default"), [("five", 1), ("1.5", 1), ("", 1.0), ("maybe", True)])
def test_a_setting_of_the_wrong_kind(text: str, default: float) -> None:
    settings.give({"name": text})
    with pytest.raises(InvalidInput, match=f"--set name={text}") as raised:
        settings.setting("name", default)
    assert type(default).__name__ in raised.value.why


def test_a_misspelt_setting_is_not_ignored(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="slises") as raised:
        load(write(tmp_path, APP), {"slises": "3"})
    assert "slices=1" in raised.value.why


def test_a_home_is_used_by_one_run_at_a_time(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    assert not home.exists()
    home.create()
    held = home.lock()
    with pytest.raises(InvalidInput, match="in use"):
        home.lock()
    held.close()
    home.lock().close()


def test_the_token_is_for_its_owner_only(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    assert len(home.token()) > 20
    assert stat.S_IMODE((home.path / "token").stat().st_mode) == 0o600
    before = home.token()
    home.create()
    assert home.token() != before


def test_a_home_remembers_what_was_asked(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.create()
    assert not home.exists()
    with pytest.raises(InvalidInput, match="holds no run"):
        home.stored()
    store = SqliteStore(home.database)
    assert not home.exists(), "a power cut before the first record leaves an empty database"
    spec = RunSpec.of("r", "app.py", settings={"a": "b"}, for_s=1.5, replace=True)
    store.keep({"run": spec.model_dump()})
    assert home.exists()
    assert home.stored() == spec


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.database.write_bytes(b"not a database" * 1000)
    with pytest.raises(InvalidInput, match=r"manager\.db cannot be read"):
        home.exists()


def test_looking_for_a_run_makes_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path / "nothing")
    with pytest.raises(InvalidInput, match="holds no run"):
        home.stored()
    assert not home.path.exists()


def test_epochs_are_due_at_a_steady_pace_from_where_the_run_goes_on() -> None:
    rhythm = Rhythm(epoch=10, time=100.0, epoch_s=0.5)
    assert [rhythm.due(epoch) for epoch in (9, 10, 12)] == [99.5, 100.0, 101.0]
    assert {rhythm.model_copy(update={"fast": True}).due(epoch) for epoch in (0, 10, 99)} == {100.0}


def test_what_a_replica_lost_before_its_process_was_started_again_stays_lost() -> None:
    ledger = Ledger(None)
    own: dict[str, Any] = {"slice": SliceId("a", 0), "generation": 2}
    ledger.see([ReplicaStatus(**own, rows_in=50, gaps=((0, 2),))])
    ledger.see([ReplicaStatus(**own, rows_in=60, gaps=((0, 2),))])
    assert len(ledger.replicas) == 1, "its counters grew"
    ledger.see([ReplicaStatus(**own)])
    ledger.see([ReplicaStatus(**own, rows_in=5, forgotten=((3, 4),))])
    assert sum(replica.rows_in for replica in ledger.replicas) == 65
    assert [gap for replica in ledger.replicas for gap in replica.gaps] == [(0, 2)]
    assert [span for replica in ledger.replicas for span in replica.forgotten] == [(3, 4)]


def test_a_ledger_survives_its_dump() -> None:
    ledger = Ledger(None)
    ledger.see([ReplicaStatus(slice=SliceId("a", 0), generation=g, rows_in=g) for g in (1, 2)])
    ledger.see([ReplicaStatus(slice=SliceId("a", 0), generation=2, rows_in=9)])
    ledger.see_node("n", 2.0, 50)
    ledger.see_node("n", 1.0, 40)
    again = Ledger(ledger.dump())
    assert (again.replicas, again.nodes) == (ledger.replicas, ledger.nodes)
    assert {(r.slice, r.generation): r.rows_in for r in again.replicas} == {
        (SliceId("a", 0), 1): 1,
        (SliceId("a", 0), 2): 9,
    }
    assert (again.nodes["n"].cpu_s, again.nodes["n"].peak_memory_bytes) == (2.0, 50)
