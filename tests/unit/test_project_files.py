"""What surrounds the code keeps step with it: CONTRIBUTING, the workflow, issue forms, hooks, `make help`."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "understudy"
PAGES = ["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "README.md"]
YAML = [".pre-commit-config.yaml", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / ".github").rglob("*.yml")))]


def targets() -> dict[str, str]:
    """Targets of the Makefile, with what they say about themselves."""
    lines = re.findall(r"^([a-z]+):[^=\n]*?(?:## (.*))?$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return dict(lines)


def rows() -> list[list[str]]:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [row for row in table if row[0] not in ("new", "---")]


def place(path: str) -> Path:
    return (ROOT if path.startswith(("tests/", "docs/", "deploy/")) else PACKAGE) / path


def defined(path: Path) -> set[str]:
    """Names that a module assigns, defines or imports at its top level."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def test_the_things_that_people_add_are_explained() -> None:
    assert {row[0] for row in rows()} >= {"source", "sink", "log", "scheme", "policy"}


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_files_and_names_to_copy_and_register_exist(row: list[str]) -> None:
    named = [match for cell in row for match in re.findall(r"`([\w/.]+/[\w/.]*|[\w/]+\.py)(?::(\w+))?`", cell)]
    assert len(named) >= 3
    for path, name in named:
        assert place(path).exists(), path
        assert not name or name in defined(place(path)), f"{path} has no {name}"


def test_whatever_is_called_a_file_to_copy_is_registered_there() -> None:
    """A source, a sink and a log that are copied are themselves in the registry that the row names."""
    for path, registry in [
        ("sources/generator.py", "sources/__init__.py"),
        ("sinks/jsonlines.py", "sinks/__init__.py"),
        ("sinks/postgres.py", "sinks/__init__.py"),
        ("log/file_log.py", "log/registry.py"),
    ]:
        assert Path(path).stem in place(registry).read_text()


@pytest.mark.parametrize("page", PAGES)
def test_links_of_the_pages_lead_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", (ROOT / page).read_text()):
        assert "://" in link or (ROOT / link).exists(), link


@pytest.mark.parametrize("name", YAML)
def test_a_file_for_a_tool_is_yaml(name: str) -> None:
    assert yaml.safe_load((ROOT / name).read_text())


def test_the_workflow_calls_targets_that_exist() -> None:
    jobs: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    called = {target for command in commands for target in re.findall(r"\bmake ([a-z]+)", command)}
    assert {"check", "test", "wheel"} <= called <= targets().keys()
    assert len(jobs["check"]["strategy"]["matrix"]["python"]) == 2


def test_issue_forms_have_what_the_forge_asks_for() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text())
        if path.name != "config.yml":
            assert {"name", "description", "body"} <= form.keys()
            fields = [part["id"] for part in form["body"] if part["type"] != "markdown"]
            assert len(fields) == len(set(fields))


def test_hooks_use_the_tools_of_the_project() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    wanted = (ROOT / "pyproject.toml").read_text()
    for hook in hooks:
        tool = hook["entry"].split()[0].rpartition("/")[2]
        assert f'"{tool}>=' in wanted, tool


def test_make_help_explains_every_target() -> None:
    said = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name, text in targets().items():
        assert text, f"{name} has no description"
        assert re.search(rf"^  make {name} +{re.escape(text)}$", said.stdout, re.MULTILINE), name


def test_the_changelog_knows_the_version() -> None:
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text()
