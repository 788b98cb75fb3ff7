"""What all tests share: one Spark session, because starting one costs more than most tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# How long an example takes says how busy the machine is, nothing else.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=50, help="how many things happen in the randomised fault test")
    parser.addoption("--seed", type=int, default=1, help="replays a randomised fault test")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """As a node starts it; with a snapshot after every other batch, so that a few batches exercise that path too."""
    from understudy.stream import session
    from understudy.stream.profile import QUICK
    from understudy.stream.settings import STREAMING

    extra = {
        f"{STREAMING}stateStore.minDeltasForSnapshot": "2",
        f"{STREAMING}stateStore.maintenanceInterval": "200ms",
    }
    yield session.start("test", "local[2]", QUICK, tmp_path_factory.mktemp("local"), extra)
    session.stop_jvm()
