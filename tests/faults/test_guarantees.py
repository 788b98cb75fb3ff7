"""What is given up with `gap` and `amnesia` is exactly what the report says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps import sums as app
from tests.faults.scripts import Driver, Script, busiest, gone, operators, progressed, protected_by
from tests.oracles import summed
from tests.oracles.delivered import delivered, differences
from understudy.model.spans import members
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(480)]

APP = Path(app.__file__)
EPOCHS = 16


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

    written = delivered(tmp_path, "out")
    assert [epoch for epoch, rows in enumerate(written) if not rows] == list(sink.gaps)
    given_up = frozenset({*sums.gaps, *members(sums.forgotten)})
    resumed_at = max(given_up, default=-1) + 1
    before, after = (summed.sums_without(app.make, EPOCHS, lost) for lost in (frozenset[int](), given_up))
    for epoch, rows in enumerate(written):
        if epoch not in sink.gaps:
            assert rows == (after if epoch >= resumed_at else before)[epoch], (epoch, given_up)
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
    report = run(APP, tmp_path, nodes=2, drive=driver, settings=settings)
    assert report.verdict == "exact"
    assert differences(tmp_path, {"out": summed.sums(app.make, report.epochs)}) == []


def test_two_replicas_that_disagree_are_named_and_never_work_side_by_side_again(tmp_path: Path) -> None:
    def both_have_worked(driver: Driver) -> Script:
        yield lambda state: {one.slice: one.scheme for one in operators(state)} == passive
        driver.launcher.inject("kill:" + operators(driver.state)[0].primary)
        yield progressed(driver.state, 3)

    # Only state that may be run again is loaded ahead.
    passive = {"noise[0]": "passive_standby_hot", "drawn[0]": "passive_standby_cold"}
    noise = APP.with_name("noise.py")
    driver = Driver(both_have_worked)
    report = run(noise, tmp_path, nodes=3, drive=driver, scheme="active_replication")
    assert report.diverged == ("drawn[0]", "noise[0]")
    for name, scheme in passive.items():
        assert (report.slices[name].scheme, report.slices[name].differed > 0) == (scheme, True)
    assert all(sink.lost_epochs == sink.duplicate_epochs == 0 for sink in report.sinks.values())
    assert report.verdict == "diverged", "they said that every replay would be the same"
