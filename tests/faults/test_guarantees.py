"""What is given up with `gap` and `amnesia` is exactly what the report says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests import oracles
from tests.faults.scripts import Driver, Script, busiest, gone, operators, progressed, protected_by
from understudy.model.spans import members
from understudy.runtime.application import load
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(480)]

APP = Path(__file__).parents[1] / "apps" / "sums.py"
EPOCHS = 16


def sums_without(lost: set[int], epochs: int) -> list[dict[int, int]]:
    """For every epoch the sum of every key, as if the lost epochs had brought nothing. All keys come in each."""
    totals: Counter[int] = Counter()
    found = []
    for epoch, rows in enumerate(oracles.source_rows(load(APP), "rows", epochs)):
        if epoch not in lost:
            for row in rows:
                totals[row["key"]] += row["value"]
        found.append(dict(totals))
    return found


@pytest.mark.parametrize("guarantee", ["gap", "amnesia"])
def test_the_lost_epochs_are_those_reported(guarantee: str, tmp_path: Path) -> None:
    settings = {"guarantee": guarantee, "scheme": "passive_replication"}
    faults = ["kill:node-1@epoch7"]
    report = run(APP, tmp_path, epochs=EPOCHS, nodes=2, faults=faults, settings=settings)
    sink, sums = report.sinks["out"], report.slices["sums[0]"]
    assert report.failure is None
    assert sums.gaps == sink.gaps
    assert report.verdict == ("lossy" if sink.gaps or sums.forgotten else "exact")
    assert sink.lost_epochs == len(sink.gaps)

    written = [pq.read_table(path) for path in sorted((tmp_path / "out" / "out").glob("*.parquet"))]
    assert [epoch for epoch, table in enumerate(written) if table.num_rows == 0] == list(sink.gaps)
    missing = {*sums.gaps, *members(sums.forgotten)}
    failed_at, resumed_at = min([*missing, EPOCHS]), max([*missing, -1]) + 1
    before, after = sums_without(set(), EPOCHS), sums_without(missing, EPOCHS)
    for epoch, table in enumerate(written):
        if epoch in sink.gaps:
            continue
        expected = after if epoch >= resumed_at else before
        assert {row["key"]: row["sum"] for row in table.to_pylist()} == expected[epoch], (epoch, failed_at)
    if guarantee == "amnesia":
        assert list(members(sums.forgotten))[:3] == [0, 1, 2]


def test_with_a_working_secondary_nothing_is_given_up(tmp_path: Path) -> None:
    def kill_when_both_work(driver: Driver) -> Script:
        yield protected_by("active_replication")
        victim = busiest(driver.state)
        driver.launcher.inject(f"kill:{victim}")
        yield gone(victim)
        yield progressed(driver.state, 3)

    settings = {"guarantee": "gap", "scheme": "active_replication"}
    driver = Driver(kill_when_both_work)
    report = run(APP, tmp_path / "faulty", nodes=2, drive=driver, settings=settings)
    expected = run(APP, tmp_path / "calm", epochs=report.epochs, nodes=1)
    assert report.sinks["out"].digest == expected.sinks["out"].digest
    assert report.verdict == "exact"


def test_two_replicas_that_disagree_are_named_and_never_work_side_by_side_again(tmp_path: Path) -> None:
    def both_have_worked(driver: Driver) -> Script:
        yield lambda state: any(one.scheme == "passive_standby_hot" for one in operators(state))
        driver.launcher.inject("kill:" + operators(driver.state)[0].primary)
        yield progressed(driver.state, 3)

    noise = APP.with_name("noise.py")
    driver = Driver(both_have_worked)
    report = run(noise, tmp_path, nodes=3, drive=driver, scheme="active_replication")
    assert report.diverged == ("noise[0]",)
    assert report.slices["noise[0]"].scheme == "passive_standby_hot"
    assert report.slices["noise[0]"].differed > 0
    assert (report.verdict, report.sinks["out"].lost_epochs) == ("exact", 0), "what was published first counts"
