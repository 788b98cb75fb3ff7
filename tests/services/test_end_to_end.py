"""The examples of docs/connectors/, run as they are there, with a node killed: read back with other clients."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from understudy.control.report import Report
from understudy.testing.cluster import run
from understudy.testing.services import Postgres

pytestmark = [pytest.mark.spark, pytest.mark.timeout(480)]

PAGES = Path(__file__).parents[2] / "docs" / "connectors"
EPOCHS = 12


def example(page: str, directory: Path) -> Path:
    """The first block of Python of a page, as a file."""
    found = re.search(r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    path = directory / f"{page.replace('-', '_')}_example.py"
    path.write_text(found[1])
    return path


def run_with_a_kill(app: Path, home: Path) -> Report:
    report = run(app, home, epochs=EPOCHS, nodes=2, faults=["kill:node-1@epoch4"])
    assert report.failure is None
    assert report.verdict == "exact"
    assert len(report.faults) == 1
    return report


def test_postgres_holds_every_row_once(postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DATABASE", postgres.address)
    run_with_a_kill(example("postgres", tmp_path), tmp_path / "home")
    orders = [(order, order % 7, order * 3 % 1000) for order in range(EPOCHS * 100)]
    with psycopg.connect(postgres.address) as connection:
        large = connection.execute('SELECT "order", shop, cents FROM large_orders ORDER BY "order"').fetchall()
        totals = connection.execute("SELECT shop, cents FROM totals ORDER BY shop").fetchall()
    assert large == [order for order in orders if order[2] >= 500]
    assert totals == [(shop, sum(cents for _, s, cents in orders if s == shop)) for shop in range(7)]
