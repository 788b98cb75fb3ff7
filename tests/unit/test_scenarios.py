"""Scenarios of the simulated cluster: defects that were found once, and what must never break."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.simulated.scenario import Scenario, play
from tests.simulated.schedules import attempt, draw

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios").glob("*.txt"))
SCHEDULES = 120
"""Random schedules in every run of the tests; `make schedules` tries thousands."""


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    play(Scenario.parse(path.read_text()))


@pytest.mark.parametrize("first", range(0, SCHEDULES, 20))
def test_random_schedules(first: int) -> None:
    failed = [found for seed in range(first, first + 20) if (found := attempt(seed)) is not None]
    assert not failed, "\n\n".join(failed)


def test_a_scenario_reads_as_it_is_written() -> None:
    for seed in range(50):
        assert Scenario.parse(str(draw(seed))) == draw(seed)


def test_a_line_that_is_not_understood_is_named() -> None:
    with pytest.raises(ValueError, match="line 2"):
        Scenario.parse("topology chain\nsometimes kill node-1")
