"""Scenarios of the simulated cluster: defects that were found once, and what must never break."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.simulated.scenario import Scenario, play
from tests.simulated.schedules import FAMILIES, attempt

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios").glob("*.txt"))
SCHEDULES = 120
"""Random schedules in every run of the tests; `make schedules` tries thousands."""
DOMAIN_SCHEDULES = 40


@pytest.fixture
def silence() -> Iterator[None]:
    """Schedules make many replicas fail, and each of them would be logged with its traceback."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, tmp_path: Path) -> None:
    """With the manager's files and SQLite, which random schedules do without; and somebody looks at the run."""
    cluster = play(Scenario.parse(path.read_text()), tmp_path)
    assert cluster.manager.state().phase.over


@pytest.mark.usefixtures("silence")
@pytest.mark.parametrize("first", range(0, SCHEDULES, 20))
def test_random_schedules(first: int) -> None:
    failed = [found for seed in range(first, first + 20) if (found := attempt(seed)) is not None]
    assert not failed, "\n\n".join(failed)


@pytest.mark.usefixtures("silence")
@pytest.mark.parametrize("first", range(0, DOMAIN_SCHEDULES, 10))
def test_random_schedules_with_domains_and_plans(first: int) -> None:
    failed = [found for seed in range(first, first + 10) if (found := attempt(seed, "domains")) is not None]
    assert not failed, "\n\n".join(failed)


def test_a_scenario_reads_as_it_is_written() -> None:
    for seed in range(50):
        for family in FAMILIES.values():
            assert Scenario.parse(str(family(seed))) == family(seed)


def test_a_line_that_is_not_understood_is_named() -> None:
    with pytest.raises(ValueError, match="line 2"):
        Scenario.parse("topology chain\nsometimes kill node-1")
