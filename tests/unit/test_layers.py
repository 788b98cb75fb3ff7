"""The folder tells the role: decisions never import what acts."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "understudy"
PURE = ("model", "control", "planning")
OUTER = ("stream", "runtime", "web", "cli", "testing", "log", "coordination", "checkpoints", "reporting", "config")


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _modules(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def _inside(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("path", _modules(*PURE), ids=lambda p: str(p.relative_to(ROOT)))
def test_pure_folders_do_not_import_what_acts(path: Path) -> None:
    forbidden = [f"understudy.{folder}" for folder in OUTER] + ["pyspark"]
    assert not [name for name in _imports(path) if _inside(name, *forbidden)]


@pytest.mark.parametrize("path", _modules("model"), ids=lambda p: p.name)
def test_model_imports_nothing_of_ours_but_itself(path: Path) -> None:
    ours = {name for name in _imports(path) if _inside(name, "understudy")}
    assert all(_inside(name, "understudy.model", "understudy.errors") for name in ours)


@pytest.mark.parametrize("path", _modules("config"), ids=lambda p: p.name)
def test_config_imports_only_the_model(path: Path) -> None:
    ours = {name for name in _imports(path) if _inside(name, "understudy")}
    assert all(_inside(name, "understudy.config", "understudy.model", "understudy.errors") for name in ours)


def test_only_stream_and_simulate_import_pyspark() -> None:
    users = {
        path.relative_to(ROOT).parts[0]
        for path in ROOT.rglob("*.py")
        if any(_inside(n, "pyspark") for n in _imports(path))
    }
    assert users <= {"stream", "simulate"}
