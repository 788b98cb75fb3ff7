"""Kills, freezes and capabilities at random moments, also in the middle of recoveries and transitions.

pytest -m spark tests/faults/test_random.py --seed 7 --rounds 200
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.apps import chain as app
from tests.faults.scripts import Driver, Script, operators, progressed
from tests.oracles import summed
from tests.oracles.delivered import differences
from understudy.model.capabilities import LADDER
from understudy.model.view import RunState
from understudy.testing.cluster import run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

APP = Path(app.__file__)


def can_lose_one(state: RunState) -> bool:
    ready = [node for node in state.nodes if node.connected and node.ready]
    return len(ready) >= 2 and len(operators(state)) > 0


def test_random_trouble_leaves_no_trace(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    seed, rounds = pytestconfig.getoption("seed"), pytestconfig.getoption("rounds")
    rng = random.Random(seed)
    done: list[str] = []

    def trouble(driver: Driver) -> Script:
        yield can_lose_one
        for _ in range(rounds):
            kind = rng.choices(["switch", "kill", "freeze"], [6, 3, 2])[0]
            if kind != "switch":
                yield can_lose_one
            state = driver.state
            if kind == "switch":
                one = rng.choice(operators(state))
                action = f"switch:{one.slice}={rng.choice(LADDER)}"
            else:
                ready = sorted(node.name for node in state.nodes if node.connected and node.ready)
                action = f"{kind}:{rng.choice(ready)}"
            done.append(action)
            driver.launcher.inject(action, length_s=rng.uniform(0.5, 4.0) if kind == "freeze" else 0.0)
            yield progressed(state, rng.choice([0, 0, 1, 2, 4]))

    print(f"seed {seed}, {rounds} rounds")
    driver = Driver(trouble)
    options = {"nodes": 3, "replace": True, "reaction": "speculative"}
    report = run(APP, tmp_path, drive=driver, **options)  # type: ignore[arg-type]
    print(" ".join(done))
    assert report.verdict == "exact", report.failure
    assert len(done) == rounds
    assert report.diverged == ()
    assert differences(tmp_path, {"out": summed.chain(app.make, report.epochs)}) == []
