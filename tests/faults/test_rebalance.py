"""A node joins a run that goes on, and gets its part of the work: the output is that of a run without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps import chain as app
from tests.faults.scripts import Condition, Driver, Script, after, both, either, progressed, working
from tests.oracles import summed
from tests.oracles.delivered import differences
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

APP = Path(app.__file__)
NEW = "node-3"
ASK_AGAIN_S = 20.0


def has_primary(node: str) -> Condition:
    return lambda state: any(one.primary == node and one.moving is None for one in state.slices)


def test_a_node_that_joins_gets_its_part_and_nothing_shows_it(tmp_path: Path) -> None:
    asked: list[dict[str, object]] = []

    def script(driver: Driver) -> Script:
        yield both(working(2), progressed(driver.state, 2))
        driver.launcher._start_node()
        yield working(3)
        # Which steps are worthwhile depends on measured loads, and a busy machine may give a step up: then ask again.
        arrived = both(has_primary(NEW), working(2))
        while not arrived(driver.state):
            asked.append(driver.launcher._client.post("/api/v1/rebalance", {}))
            yield either(arrived, after(driver.state, ASK_AGAIN_S))
        yield progressed(driver.state, 3)

    # Without secondaries, which a busy machine would throttle: then only primaries can go there.
    options = {"scheme": "passive_replication", "backlog": 100, "config": {"cluster": {"placement": "interleaved"}}}
    driver = Driver(script)
    report = run(APP, tmp_path / "joined", drive=driver, nodes=2, fast=False, **options)  # type: ignore[arg-type]
    for answer in asked:
        print(answer)
    for one in report.moves:
        print(one)
    assert report.verdict == "exact", report.failure
    assert driver.done
    assert any(answer["steps"] for answer in asked)
    assert NEW in {one.node for one in report.moves}
    assert report.diverged == ()
    assert differences(tmp_path / "joined", {"out": summed.chain(app.make, report.epochs)}) == []
    calm = run(APP, tmp_path / "calm", nodes=1, epochs=report.epochs)
    assert report.sinks["out"].digest == calm.sinks["out"].digest
