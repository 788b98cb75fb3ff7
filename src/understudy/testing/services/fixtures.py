"""Fixtures for pytest, one for each service, started at its first use and ended with the session.

In a conftest.py: `from understudy.testing.services.fixtures import kafka, zookeeper`. Tests share the service, so each
uses names of its own (topics, buckets, tables), and one that ends the service restarts it. A service that is not
installed skips the test with the reason; one that is damaged or does not start fails it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from understudy.errors import Unavailable
from understudy.testing.services.base import Service
from understudy.testing.services.jars import Damaged
from understudy.testing.services.kafka import Kafka
from understudy.testing.services.postgres import Postgres
from understudy.testing.services.s3 import S3
from understudy.testing.services.zookeeper import ZooKeeper

__all__ = ["kafka", "kafka_three", "postgres", "s3", "zookeeper"]

S = TypeVar("S", bound=Service)


def require(service: type[Service]) -> None:
    """Skips the test when the service cannot be started here because something is not installed."""
    try:
        service.check()
    except Damaged:
        raise
    except Unavailable as missing:
        pytest.skip(str(missing))


@contextmanager
def _running(service: S) -> Iterator[S]:
    require(type(service))
    with service:
        yield service


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """One broker."""
    with _running(Kafka()) as running:
        yield running


@pytest.fixture(scope="module")
def kafka_three() -> Iterator[Kafka]:
    """Three brokers, ended with the module: they take half a gigabyte."""
    with _running(Kafka(brokers=3)) as running:
        yield running


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[ZooKeeper]:
    with _running(ZooKeeper()) as running:
        yield running


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    with _running(S3()) as running:
        yield running


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with _running(Postgres()) as running:
        yield running
