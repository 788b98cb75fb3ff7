"""Each service is started once for all tests here."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy.testing.services.fixtures import kafka, kafka_three, postgres, s3, zookeeper

__all__ = ["kafka", "kafka_three", "postgres", "s3", "zookeeper"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.services)
