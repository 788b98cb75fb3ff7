"""The command line answers mistakes with what happened, why and what to do, and starts nothing."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy.cli.main import app
from understudy.coordination.sqlite import SqliteStore
from understudy.model.run import RunSpec

APP = Path(__file__).parents[1] / "apps" / "sums.py"
NO_TOPOLOGY = "x = 1\n"
TWO = "import understudy as us\na = us.Topology('a')\nb = us.Topology('b')\n"


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments])
    assert result.exit_code == 2, result.output
    assert "why:" in result.output
    assert "fix:" in result.output
    return result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "missing.py"], "missing.py"),
        (["run", str(APP), "--fault", "explode:node-1@3s"], "explode"),
        (["run", str(APP), "--fault", "freeze:node-1@3s"], "freeze:NODE@8s+3s"),
        (["run", str(APP), "--set", "rows"], "NAME=VALUE"),
        (["run", str(APP), "--set", "rows=many"], "rows"),
        (["run", str(APP), "--set", "rwos=3"], "rwos"),
        (["run", str(APP), "--for", "a while"], "a while"),
        (["run", str(APP), "--for", "60s", "--epochs", "5"], "--epochs 5"),
        (["run", str(APP), "--profile", "turbo"], "quick, full"),
        (["run", str(APP), "--domains", "4", "--nodes", "3"], "--domains 4"),
        (["run", str(APP), "--fault", "switch:nobody[0]=active_standby@1s"], "sums[0]"),
        (["run", str(APP), "--fault", "switch:sums[1]=active_standby@1s"], "sums[0]"),
        (["run", str(APP), "--fault", "switch:rows[0]=active_standby@1s"], "sums[0]"),
        (["run", str(APP), "--fault", "move:sums[0]=node-7@1s"], "there is no node-7"),
        (["run", str(APP), "--report", "nowhere/report.json"], "nowhere"),
        (["run", str(APP), "--report", "."], "directory"),
        (["run", str(APP), "--home", str(APP)], "--home"),
        (["topology", "missing.py"], "missing.py"),
        (["node", "--join", "http://127.0.0.1:1"], "token"),
    ],
    ids=lambda value: " ".join(value[2:] or value)[:30] if isinstance(value, list) else "",
)
def test_mistakes_are_explained(arguments: list[str], said: str) -> None:
    assert said in refused(*arguments)


def test_a_port_that_does_not_exist_is_no_traceback() -> None:
    for arguments in (["run", str(APP), "--port", "99999"], ["doctor", "--port", "-1"]):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2, result.output
        assert "--port" in result.output
        assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize(("text", "said"), [(NO_TOPOLOGY, "no topology"), (TWO, "2 topologies")])
def test_a_file_has_one_topology(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "application_under_test.py"
    path.write_text(text)
    assert said in refused("topology", str(path))


def test_a_used_home_is_not_mixed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "manager.db")
    store.keep({"run": RunSpec(id="r", app=str(APP)).model_dump()})
    store.close()
    assert "--resume" in refused("run", str(APP), "--home", str(tmp_path))


def test_an_empty_home_cannot_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no run" in refused("run", str(APP), "--resume")
    assert "no run" in refused("run", str(APP), "--resume", "--home", str(tmp_path / "nothing"))
    assert not (tmp_path / "nothing").exists(), "looking for a run must not make a home"


def test_a_fault_needs_a_target(tmp_path: Path) -> None:
    output = refused("run", str(APP), "--home", str(tmp_path), "--port", "0", "--fault", "kill:node-9@3s")
    assert "node-9" in output


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        assert port in refused("run", str(APP), "--home", str(tmp_path), "--port", port)
    assert not (tmp_path / "manager.db").exists(), "a run that never began must not claim its home"


def test_topology_prints_text_mermaid_and_json() -> None:
    def printed(*options: str) -> str:
        result = CliRunner().invoke(app, ["topology", str(APP), *options])
        assert result.exit_code == 0, result.output
        return result.stdout

    assert "sums" in printed()
    assert "rows -->" in printed("--format", "mermaid")
    described = json.loads(printed("--json"))
    assert [operator["name"] for operator in described["operators"]] == ["sums"]
    assert described["operators"][0]["inputs"] == ["rows"]
