"""The verbs that talk to a running manager, against a simulated run behind a real port."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.theatre import TOKEN, Theatre
from typer.testing import CliRunner

from understudy.cli import remote
from understudy.cli.main import app
from understudy.cli.switch import complete_schemes
from understudy.runtime import checkup
from understudy.runtime.checkup import Finding
from understudy.runtime.client import Client
from understudy.runtime.home import Home


@pytest.fixture(scope="module")
def theatre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theatre]:
    home = tmp_path_factory.mktemp("homes") / ".understudy" / "wordcount" / "first"
    home.mkdir(parents=True)
    with Theatre(home, nodes=4) as made:
        (home / "token").write_text(TOKEN)
        Home(home).announce(made.url)
        while not json.loads(Client(made.url).get("/api/v1/view"))["slices"]:
            pass
        yield made


def ask(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, [*arguments])
    assert result.exit_code == code, result.output
    return result.output


# -- finding the manager


def test_the_newest_home_that_answers_is_found(
    theatre: Theatre, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = theatre.cluster.home
    monkeypatch.chdir(home.parents[2])
    newer = home.parent / "second"
    newer.mkdir()
    Home(newer).announce("http://127.0.0.1:1")
    assert json.loads(ask("status", "--json"))["app"] == "wordcount"


@pytest.mark.parametrize(
    "verb",
    [["status"], ["events"], ["switch", "counts[0]", "deployed"], ["move", "counts[0]", "node-2"], ["drain", "node-1"]],
)
def test_no_manager_is_one_line_and_exit_code_3(
    verb: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for where in ([], ["--home", str(tmp_path)], ["--url", "http://127.0.0.1:1"]):
        output = ask(*verb, *where, code=3)
        assert len(output.strip().splitlines()) == 1
        assert "understudy run" in output


def test_a_token_file_that_is_not_there_is_named(theatre: Theatre, tmp_path: Path) -> None:
    output = ask("status", "--url", theatre.url, "--token-file", str(tmp_path / "nothing"), code=2)
    assert "nothing" in output
    assert "fix:" in output


def test_an_address_that_is_none_is_refused() -> None:
    assert "http" in ask("status", "--url", "nowhere", code=3)


def test_the_shell_completes_names_of_the_run(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(theatre.cluster.home.parents[2])
    assert remote.complete_slices("counts") == ["counts[0]", "counts[1]"]
    assert "node-1" in remote.complete_nodes("node-")
    assert complete_schemes("passive_s") == ["passive_standby_cold", "passive_standby_hot"]
    monkeypatch.chdir(tmp_path)
    assert remote.complete_nodes("") == []


# -- looking


def test_status_lists_every_slice_and_node(theatre: Theatre) -> None:
    output = ask("status", "--home", str(theatre.cluster.home))
    for slice_id in theatre.cluster.layout.slices:
        assert str(slice_id) in output
    assert "node-1" in output
    assert "\x1b" not in output, "plain when piped"


def test_events_have_numbers_and_causes(theatre: Theatre) -> None:
    lines = [json.loads(line) for line in ask("events", "--url", theatre.url, "--json").splitlines()]
    assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
    rest = [json.loads(line) for line in ask("events", "--url", theatre.url, "--after", "2", "--json").splitlines()]
    assert rest[: len(lines) - 2] == lines[2:]
    assert "manager started" in ask("events", "--url", theatre.url)


def test_following_ends_with_the_run(tmp_path: Path) -> None:
    with Theatre(tmp_path, epochs=4) as theatre:
        lines = ask("events", "--follow", "--json", "--url", theatre.url).splitlines()
    assert json.loads(lines[-1])["kind"] == "finished"


# -- commanding


def test_commands_need_the_token(theatre: Theatre) -> None:
    output = ask("kill", "node-4", "--yes", "--url", theatre.url, code=2)
    assert "--token-file" in output
    assert theatre.hands.done == []


def test_kill_asks_first(theatre: Theatre) -> None:
    ask("kill", "node-4", "--home", str(theatre.cluster.home), code=1)
    assert theatre.hands.done == []


def test_freeze_kill_and_drain(theatre: Theatre) -> None:
    home = ["--home", str(theatre.cluster.home)]
    assert "0.05 s" in ask("freeze", "node-3", "--for", "50 ms", "--yes", *home)
    assert "node-2 is being drained" in ask("drain", "node-2", *home)
    assert "takes slices again" in ask("drain", "node-2", "--undo", *home)
    assert "give one of the two" in ask("drain", "node-2", "--undo", "--within", "3s", *home, code=2)
    assert "there is no such node" in ask("move", "counts[0]", "node-9", *home, code=2)
    number = json.loads(ask("kill", "node-4", "--yes", "--json", *home))["number"]
    assert ("kill", "node-4") in theatre.hands.done
    followed = [json.loads(line) for line in ask("events", "--json", "--after", str(number - 1), *home).splitlines()]
    assert followed[0]["kind"] == "fault"
    assert "there is no node node-9" in ask("kill", "node-9", "--yes", *home, code=2)


def test_switch_posts_slice_and_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a stub: the manager's own route has its own tests."""
    stub, posted = FastAPI(), []

    @stub.post("/api/v1/switch")
    async def take(body: dict[str, Any]) -> dict[str, Any]:
        posted.append(body)
        return {"number": 7}

    def request(method: str, url: str, **more: Any) -> Any:
        more.pop("timeout")
        return TestClient(stub).request(method, url.removeprefix("http://stub"), **more)

    monkeypatch.setattr("httpx.Client", lambda **_: SimpleNamespace(request=request))
    assert "counts[1] goes to passive_standby_hot" in ask(
        "switch", "counts[1]", "passive-standby-hot", "--url", "http://stub"
    )
    assert json.loads(ask("switch", "counts[0]", "deployed", "--json", "--url", "http://stub")) == {"number": 7}
    assert posted == [
        {"slice": "counts[1]", "scheme": "passive_standby_hot"},
        {"slice": "counts[0]", "scheme": "deployed"},
    ]
    assert "is not a scheme" in ask("switch", "counts[0]", "hope", "--url", "http://stub", code=2)
    assert "is not a slice" in ask("switch", "counts", "deployed", "--url", "http://stub", code=2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["status", "--wach"], "--watch"),
        (["stat"], "No such command 'stat'"),
        (["events", "--after", "yesterday"], "--after"),
        (["run", "app.py", "--epochs", "0"], "--epochs"),
        (["kill"], "NODE"),
    ],
)
def test_a_wrong_use_is_one_line(arguments: list[str], said: str) -> None:
    output = ask(*arguments, code=2)
    assert len(output.strip().splitlines()) == 1
    assert said in output
    assert "--help" in output


# -- doctor


def test_doctor_names_every_check_and_exits_by_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads(ask("doctor", "--port", "0", "--json"))
    names = ["Python", "Java", "PySpark", "port", "permissions", "disk", "memory", "open files", "temporary files"]
    assert [check["name"] for check in found] == names
    monkeypatch.setattr(checkup, "DISK_BYTES", 2**60)
    output = ask("doctor", "--port", "0", code=1)
    assert "fix: free at least 1 GB" in output


def test_what_is_wrong_comes_with_its_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checkup.check_python((3, 9, 1)).finding is Finding.BAD
    monkeypatch.setattr("importlib.metadata.version", lambda _: "3.5.1")
    monkeypatch.setattr("resource.getrlimit", lambda _: (256, 256))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    bad = [
        checkup.check_pyspark(),
        checkup.check_files(),
        checkup.check_memory(10**6),
        checkup.check_port("203.0.113.1", 80),
    ]
    assert all(check.finding is not Finding.GOOD and check.fix for check in bad)
    assert "4.3" in bad[0].fix


def test_a_directory_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryDirectory", refuse)
    check = checkup.check_writable(tmp_path / "deep" / "home")
    assert (check.finding, "Permission denied" in check.found) == (Finding.BAD, True)
    assert str(tmp_path) in check.fix


# -- plans


APPLICATION = """
import pyarrow as pa
import understudy as us

app = us.Topology("wordcount")
app.source("lines", us.sources.Generator(lambda epoch, slice, rows, rng: pa.table({"n": range(rows)}), "n long"))
app.sink("out", "lines", us.sinks.JsonLines("out"))
"""


def test_a_plan_is_shown_and_applied_to_the_running_system(theatre: Theatre, tmp_path: Path) -> None:
    file, home = tmp_path / "app.py", ["--home", str(theatre.cluster.home)]
    file.write_text(APPLICATION)
    refused = ask("plan", str(file), "--budget", "3", "--apply", *home, code=1)
    assert "fidelity 0.000 now, 0.250 planned" in " ".join(refused.split())
    assert "recovered first" in refused, "what a planned source gets"
    assert "active_standby" in refused
    assert theatre.cluster.manager.memory.decisions.plan is None, "nobody said yes"
    applied = json.loads(ask("plan", str(file), "--budget", "3", "--apply", "--yes", "--json", *home))
    assert (applied["budget"], len(applied["slices"]), applied["fidelity"]) == (3, 3, 0.25)
    (told,) = [line for line in ask("events", "--json", *home).splitlines() if json.loads(line)["kind"] == "plan"]
    assert json.loads(told)["fields"]["slices"] == applied["slices"]


def test_a_plan_for_another_application_is_not_applied(theatre: Theatre, tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(APPLICATION.replace("wordcount", "another"))
    output = ask("plan", str(file), "--budget", "3", "--apply", "--yes", "--home", str(theatre.cluster.home), code=2)
    assert "is not the application that runs" in output
