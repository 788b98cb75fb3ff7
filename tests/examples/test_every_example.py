"""What holds for every example with a folder of its own."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from tests.examples.running import ROOT, app_file, tables
from understudy.model.hashing import digest
from understudy.runtime.application import load

NAMES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/app.py"))


def beside(name: str) -> list[Path]:
    return sorted(path for path in app_file(name).parent.glob("*.py") if path.name != "app.py")


def test_there_are_examples() -> None:
    assert len(NAMES) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_every_generator_makes_the_same_epochs_again(name: str) -> None:
    first, second = (tables(name, 3, {"rate": "50", "seed": "9"}) for _ in range(2))
    other = tables(name, 3, {"rate": "50", "seed": "10"})
    assert [digest(table) for table in first] == [digest(table) for table in second]
    assert len({digest(table) for table in [*first, *other]}) == 6


@pytest.mark.parametrize("name", NAMES)
def test_every_generator_can_make_an_epoch_without_rows(name: str) -> None:
    # At a thousandth of a row a second the first epochs have none.
    assert [table.num_rows for table in tables(name, 2, {"rate": "0.001"})] == [0, 0]


@pytest.mark.parametrize("name", NAMES)
def test_every_example_is_protected_and_documented(name: str) -> None:
    app = load(app_file(name))
    assert {operator.recovery.scheme for operator in app.operators} != {"passive_replication"}
    readme = (app_file(name).parent / "README.md").read_text()
    assert f"understudy run examples/{name}/app.py" in readme
    names = [*app.streams, *(sink.name for sink in app.sinks)]
    assert [entry for entry in names if entry not in readme] == []
    page = (ROOT / "docs" / "examples.md").read_text()
    assert f"examples/{name}/" in page


@pytest.mark.parametrize("path", [path for name in NAMES for path in beside(name)], ids=lambda path: path.stem)
def test_every_doctest_shows_what_happens(path: Path) -> None:
    load(path.parent / "app.py")
    assert doctest.testmod(importlib.import_module(path.stem)).failed == 0


def test_module_names_are_unique() -> None:
    """All examples may be loaded into one process, which knows a module by its name."""
    names = [path.stem for name in NAMES for path in beside(name)]
    assert len(set(names)) == len(names)
