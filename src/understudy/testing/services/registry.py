"""The services by name."""

from __future__ import annotations

from collections.abc import Mapping

from understudy.errors import InvalidInput
from understudy.testing.services.base import Service
from understudy.testing.services.kafka import Kafka
from understudy.testing.services.postgres import Postgres
from understudy.testing.services.s3 import S3
from understudy.testing.services.zookeeper import ZooKeeper

SERVICES: Mapping[str, type[Service]] = {one.name: one for one in (Kafka, ZooKeeper, S3, Postgres)}


def named(name: str) -> type[Service]:
    """Returns the class of a service by its name.

    Parameters
    ----------
    name : {"kafka", "zookeeper", "s3", "postgres"}
        Name of the service.

    Returns
    -------
    type

    Raises
    ------
    InvalidInput
        If there is no such service.

    Examples
    --------
    >>> named("zookeeper").__name__
    'ZooKeeper'
    """
    if name not in SERVICES:
        raise InvalidInput(
            f"There is no service {name!r}.",
            why="Nothing is registered by that name.",
            fix=f"One of {', '.join(SERVICES)}.",
        )
    return SERVICES[name]
