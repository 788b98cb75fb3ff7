"""A whole domain vanishes under a plan: the output is that of a run without failures, and what plain Python says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.apps import chain as app
from tests.faults.scripts import Driver, Script, both, operators, progressed, working
from tests.oracles import summed
from tests.oracles.delivered import differences
from understudy.model.recovery import ACTIVE
from understudy.model.view import RunState
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(480)]

APP = Path(app.__file__)


def two_work(state: RunState) -> bool:
    """Of `even` and the two slices of `sums`, two have secondaries that work, however late these are on a busy machine.

    The third replica of the budget is the source's.
    """
    at_work = {
        str(r.slice) for node in state.nodes for r in node.replicas if not r.primary and r.capabilities.processes
    }
    return sum(one.scheme in ACTIVE and one.slice in at_work for one in operators(state)) == 2


def test_a_domain_vanishes_under_a_plan(tmp_path: Path) -> None:
    """Two nodes of three: planned slices are taken over by the third, others are restored there. No connection is
    closed, so only silence tells."""

    def script(driver: Driver) -> Script:
        yield both(working(3), two_work)
        yield progressed(driver.state, 2)
        yield both(working(3), two_work)
        driver.launcher.inject("vanish:domain-1")
        yield lambda state: all(node.domain != "domain-1" for node in state.nodes)
        yield progressed(driver.state, 4)

    driver = Driver(script)
    options = {"nodes": 3, "domains": 2, "budget": 3, "fast": False, "backlog": 100, "primaries_first": False}
    report = run(APP, tmp_path / "faulty", drive=driver, **options)  # type: ignore[arg-type]
    assert report.verdict == "exact", report.failure
    assert driver.done
    (fault,) = report.faults
    assert fault.spec.startswith("vanish:domain-1@")
    assert fault.detected_after_s is not None
    assert fault.recoveries

    events = [json.loads(line) for line in (tmp_path / "faulty" / "events.jsonl").read_text().splitlines()]
    (plan,) = [event["fields"] for event in events if event["kind"] == "plan"]
    assert (plan["algorithm"], plan["fidelity_after"]) == ("exact", 0.5)
    # One event, or one for each node where the machine was so busy that one of them was late when it was killed.
    losses = [event["fields"] for event in events if event["kind"] in ("domain_lost", "node_lost")]
    lost = [name for fields in losses for name in fields.get("nodes", [fields.get("node")])]
    assert sorted(lost) == ["node-1", "node-3"]

    clean = run(APP, tmp_path / "clean", epochs=report.epochs, nodes=1)
    assert clean.verdict == "exact"
    assert report.sinks["out"].digest == clean.sinks["out"].digest
    assert differences(tmp_path / "faulty", {"out": summed.chain(app.make, report.epochs)}) == []
