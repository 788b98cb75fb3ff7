"""The project that `understudy init` writes is right as it is: checked, tested, linted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy.cli.init import STARTER
from understudy.cli.main import app


@pytest.fixture
def project(tmp_path: Path) -> Path:
    said = CliRunner().invoke(app, ["init", str(tmp_path / "my shop")])
    assert said.exit_code == 0, said.output
    assert "understudy run app.py" in said.output
    return tmp_path / "my shop"


def run(project: Path, *command: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_project_has_its_files_and_its_name(project: Path) -> None:
    assert {path.name for path in project.iterdir()} == set(STARTER)
    assert 'us.Topology("my-shop"' in (project / "app.py").read_text()
    assert len((project / "README.md").read_text().splitlines()) <= 10
    assert not any("$" in path.read_text() for path in project.iterdir())


def test_a_project_is_checked_by_run(project: Path) -> None:
    said = run(project, "understudy", "run", "app.py", "--check")
    assert said == "app.py: my-shop has 3 parts and would run on 3 nodes; nothing was started\n"
    assert not (project / ".understudy").exists()
    assert 'reaction = "speculative"' in run(project, "understudy", "config", "app.py")


def test_a_project_passes_its_own_tests_and_a_linter(project: Path) -> None:
    assert "1 passed, 1 deselected" in run(project, "pytest", "-m", "not spark", "-p", "no:cacheprovider")
    usual = ["--no-cache", "--isolated", "--line-length", "120"]
    run(project, "ruff", "check", *usual, "--select", "E,F,W,I,UP,B", ".")
    run(project, "ruff", "format", *usual, "--check", ".")


@pytest.mark.parametrize(
    ("directory", "name"), [("2024 sales!", "app-2024-sales"), ("clicks", "clicks"), ("_x", "x"), ("é", "app")]
)
def test_a_topology_is_called_like_its_directory(tmp_path: Path, directory: str, name: str) -> None:
    assert CliRunner().invoke(app, ["init", str(tmp_path / directory)]).exit_code == 0
    assert f'us.Topology("{name}"' in (tmp_path / directory / "app.py").read_text()


def test_nothing_is_overwritten(project: Path, tmp_path: Path) -> None:
    for arguments in (["init", str(project)], ["init", str(tmp_path / "new"), "--name", "1st"]):
        said = CliRunner().invoke(app, arguments)
        assert said.exit_code == 2
        assert "fix:" in said.output
    assert not (tmp_path / "new").exists()
