"""The folder tells the role: which package may import which, and that imports never go in a circle."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "understudy"

BASE = {"model", "errors", "settings"}
DECISIONS = {"control/application", "control/cluster", "control/placement", "control/scaling"}
DECISIONS |= {"control/schemes", "control/replica"}
DATA = {"log", "checkpoints", "coordination", "sources", "sinks"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "settings": {"errors"},
    "model": {"errors"},
    "config": {"model", "errors"},
    "control/replica": {"model", "errors"},
    "control/schemes": {"control/replica", "model", "errors"},
    "control/placement": {"model", "errors"},
    "control/scaling": {"model", "errors"},
    "control/cluster": {
        "control/placement",
        "control/scaling",
        "control/schemes",
        "control/replica",
        "model",
        "errors",
    },
    "control/application": {"model", "errors"},
    "planning": {"control/placement", "model", "errors"},
    "queries": {"model", "errors"},
    "log": {"clients", "model", "errors"},
    "checkpoints": {"control/replica", "log", "clients", "model", "errors"},
    "coordination": {"model", "errors"},
    "clients": {"model", "errors"},
    "sources": {"clients"} | BASE,
    "sinks": {"clients", "log"} | BASE,
    "reporting": DECISIONS | {"model", "errors"},
    "simulate": {"control/schemes", "planning", "sources"} | BASE,
    "stream": DECISIONS | DATA | BASE,
    "nexmark": {"runtime", "stream", "sources"} | BASE,
    "web": {"reporting"} | DECISIONS | {"model", "errors"},
    "runtime": {"web", "reporting", "stream", "planning"} | DECISIONS | DATA | BASE,
    "testing": {"runtime", "reporting", "stream"} | DATA | BASE,
    "cli": {"web", "reporting", "stream", "runtime", "planning", "simulate", "testing", "nexmark", "config", "queries"}
    | DECISIONS
    | DATA
    | BASE,
    "": {"cli", "queries", "sources", "sinks"} | BASE,
}
"""For every package, the packages it may import besides itself. "" is the package `understudy` itself."""
THREADED = ("stream", "simulate", "nexmark", "queries")
"""Packages that may import PySpark."""


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _room(parts: tuple[str, ...]) -> str:
    """The package a module belongs to; the rooms of `control` count each for itself."""
    if not parts or (len(parts) == 1 and parts[0] not in ALLOWED):
        return ""
    return "/".join(parts[:2]) if parts[0] == "control" and "/".join(parts[:2]) in ALLOWED else parts[0]


def _package(path: Path) -> str:
    return _room(path.relative_to(ROOT).with_suffix("").parts)


def _imported(path: Path) -> set[str]:
    """The packages of ours that a module imports, without its own."""
    found = set()
    for name in _imports(path):
        first, *rest = name.split(".")
        if first == "understudy" and rest:
            room = _room(tuple(rest))
            found |= {room} if room in ALLOWED else set()
    return found - {_package(path), ""}


MODULES = sorted(path for path in ROOT.rglob("*.py") if "page" not in path.relative_to(ROOT).parts)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_package_imports_only_what_it_may(path: Path) -> None:
    package = _package(path)
    if package == "control":
        assert not _imported(path), "the door of control imports nothing"
        return
    assert package in ALLOWED, f"{package} is not in the table"
    assert _imported(path) <= ALLOWED[package]


def test_imports_do_not_go_in_a_circle() -> None:
    edges: dict[str, set[str]] = {}
    for path in MODULES:
        edges.setdefault(_package(path), set()).update(_imported(path))

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        todo = list(edges.get(start, ()))
        while todo:
            package = todo.pop()
            if package not in seen:
                seen.add(package)
                todo += edges.get(package, ())
        return seen

    assert not [package for package in edges if package in reachable(package)]


def test_only_the_process_of_the_manager_puts_runtime_and_web_together() -> None:
    users = {path.name for path in MODULES if _package(path) == "runtime" and "web" in _imported(path)}
    assert users == {"serve.py"}


def _spark_users() -> set[Path]:
    return {path for path in MODULES if any(name.split(".")[0] == "pyspark" for name in _imports(path))}


def test_only_four_packages_import_pyspark() -> None:
    assert {_package(path) for path in _spark_users()} <= set(THREADED)


def test_queries_meet_spark_in_two_files() -> None:
    assert {path.name for path in _spark_users() if _package(path) == "queries"} == {"frames.py", "sequences.py"}


DOORS = [
    "control",
    "control/application",
    "control/cluster",
    "control/placement",
    "control/schemes",
    "reporting",
    "coordination",
]
DOORS += ["runtime", "web", "cli", "model", "config", "nexmark", "queries"]


@pytest.mark.parametrize("package", DOORS)
def test_every_door_says_what_lives_there(package: str) -> None:
    said = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text())) or ""
    assert "mport" in said, "what it may import"
