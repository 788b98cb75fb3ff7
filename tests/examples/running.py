"""Runs an example, kills a node in the middle, and hands over what it read and what it wrote."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.faults.scripts import Driver, Script, busiest, gone, healthy, progressed
from tests.oracles.rows import Epochs, generated
from understudy.model.hashing import partition
from understudy.model.report import Report
from understudy.runtime.application import load
from understudy.sources import Generator
from understudy.testing.cluster import run

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("UNDERSTUDY_DATA", ROOT.parent / "shared" / "data"))


def app_file(name: str) -> Path:
    return ROOT / "examples" / name / "app.py"


@cache
def module(name: str, of: str) -> Any:
    """A module beside an example's app.py, as the application itself imports it."""
    load(app_file(name))
    return importlib.import_module(of)


def real(name: str) -> pytest.MarkDecorator:
    """A mark for tests that read real data, which is not part of the project."""
    return pytest.mark.skipif(not (DATA / name).exists(), reason=f"{name} is not in {DATA}; set UNDERSTUDY_DATA")


def tables(name: str, epochs: int, settings: Mapping[str, str]) -> list[pa.Table]:
    """What the source of an example gives in each epoch, as a run reads it."""
    app = load(app_file(name), settings)
    reader = app.sources[0].source.open(0, 1, app.epoch_s)
    found, start = [], None
    for epoch in range(epochs):
        end = reader.cut(epoch, start)
        found.append(reader.read(epoch, start, end))
        start = end
    return found


def read(name: str, epochs: int, settings: Mapping[str, str]) -> Epochs:
    """The rows of a file that an example reads."""
    return [table.to_pylist() for table in tables(name, epochs, settings)]


def made(name: str, epochs: int, settings: Mapping[str, str]) -> Epochs:
    """The rows that an example generates, made again without the project's source."""
    app = load(app_file(name), settings)
    source = app.sources[0].source
    assert isinstance(source, Generator)
    assert isinstance(source.rate, float)
    return generated(source.make, source.rate, source.seed, epochs, app.epoch_s)


def lose_a_node(driver: Driver) -> Script:
    """When every slice is protected as the application wants, the node with the most primaries is killed."""
    yield progressed(driver.state, 4)
    yield healthy(2)
    victim = busiest(driver.state)
    driver.launcher.inject(f"kill:{victim}")
    yield gone(victim)
    yield progressed(driver.state, 3)


def run_with_a_kill(name: str, home: Path, settings: Mapping[str, str], **options: Any) -> Report:
    """The report of a run on two nodes of which one is killed; it must be exact, with a recovery to show for it."""
    driver = Driver(lose_a_node)
    report = run(app_file(name), home, nodes=2, backlog=4, drive=driver, settings=dict(settings), **options)
    assert report.verdict == "exact", report.failure
    assert driver.done
    assert len(report.faults) == 1
    assert report.faults[0].recoveries
    return report


def slices_of(column: str, keys: pa.Array, slices: int) -> dict[Any, int]:
    """Which slice of an operator has each value of its key."""
    parts = partition(pa.table({column: keys}), [column], slices)
    return {key: number for number, part in enumerate(parts) for key in part[column].to_pylist()}
