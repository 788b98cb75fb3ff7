"""Nexmark queries of every kind of state in one topology: a node is killed, and every epoch is as the oracles say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.running import lose_a_node
from tests.faults.scripts import Driver
from tests.oracles import nexmark as oracle
from tests.oracles.delivered import differences, rows
from tests.oracles.rows import generated
from understudy.cli.nexmark_run import APP
from understudy.nexmark.events import Events
from understudy.testing.cluster import run

pytestmark = pytest.mark.spark
RATE, EPOCH_S, SEED, GROUP = 50.0, 6.0, 11, 500


@pytest.mark.parametrize(
    ("scheme", "queries"),
    [("passive_standby_hot", ("q4", "q5", "q19")), ("active_standby", ("q9", "q11", "q20"))],
    ids=["hot", "active"],
)
def test_a_killed_node_changes_nothing(scheme: str, queries: tuple[str, ...], tmp_path: Path) -> None:
    driver = Driver(lose_a_node)
    settings = {"query": ",".join(queries), "rate": str(RATE), "epoch": f"{EPOCH_S:g} s", "seed": str(SEED)}
    settings["group"] = str(GROUP)
    report = run(APP, tmp_path, nodes=2, backlog=4, drive=driver, settings=settings, scheme=scheme)
    assert report.verdict == "exact", report.failure
    assert driver.done
    assert report.faults[0].recoveries
    epochs = generated(Events(RATE, EPOCH_S, SEED, GROUP).make, RATE, SEED, report.epochs, EPOCH_S)
    expected = {name: oracle.EXPECTED[name](epochs) for name in queries}
    assert min(rows(expected).values()) > 5
    assert differences(tmp_path, expected) == []
