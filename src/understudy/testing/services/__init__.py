"""Real servers for tests: Kafka, ZooKeeper, S3 and PostgreSQL, on free ports, to be killed and frozen at will.

`make services` installs them, docs/services.md tells how to use them.
"""

from __future__ import annotations

from understudy.testing.services.base import Service
from understudy.testing.services.kafka import Kafka
from understudy.testing.services.postgres import Postgres
from understudy.testing.services.registry import SERVICES, named
from understudy.testing.services.s3 import S3
from understudy.testing.services.zookeeper import ZooKeeper

__all__ = ["S3", "SERVICES", "Kafka", "Postgres", "Service", "ZooKeeper", "named"]
