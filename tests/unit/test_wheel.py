"""The wheel holds everything the package needs, and works without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "understudy"
NEEDED = [
    "understudy/py.typed",
    "understudy/queries/grammar.lark",
    "understudy/web/page/index.html",
    "understudy/web/page/vendor/lit-html.js",
    "understudy/stream/jvm/understudy.jar",
    "understudy/cli/starter/app.py.txt",
    "understudy/config/head.md",
    "understudy/testing/services/locks/kafka.lock",
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("hatchling") is None or find_spec("pip") is None:
        pytest.skip("the build backend 'hatchling' and pip are needed to build a wheel without network")
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*command, "--wheel-dir", str(place), str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = place.glob("*.whl")
    return made


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_file_of_the_package_is_in_the_wheel(wheel: Path) -> None:
    kept = subprocess.run(
        ["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    files = {path.removeprefix("src/") for path in kept if (ROOT / path).exists()}
    assert set(NEEDED) <= files
    assert files <= names(wheel)


def test_nothing_else_is_in_the_wheel(wheel: Path) -> None:
    others = {name for name in names(wheel) if not name.startswith("understudy/")}
    assert all(".dist-info/" in name for name in others)
    assert any(name.endswith("licenses/LICENSE") for name in others)
    assert not [name for name in names(wheel) if "__pycache__" in name or name.startswith("tests")]


def test_the_description_names_the_command_and_the_extras(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        entries = next(name for name in archive.namelist() if name.endswith("entry_points.txt"))
        metadata = next(name for name in archive.namelist() if name.endswith("METADATA"))
        assert "understudy = understudy.cli.main:app" in archive.read(entries).decode()
        described = archive.read(metadata).decode()
    for extra in ("java", "kafka", "avro", "postgres", "delta", "iceberg", "queries", "planning", "plot"):
        assert f"Provides-Extra: {extra}" in described


def test_the_application_in_the_wheel_is_checked_by_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """Unpacked as pip would, far from the checkout: its own files are all it has."""
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    environment = {**os.environ, "PYTHONPATH": str(site)}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert run("-c", "import understudy; print(understudy.__file__)").startswith(str(site))
    run("-m", "understudy", "init", "shop")
    assert "nothing was started" in run("-m", "understudy", "run", "shop/app.py", "--check")
