"""Real servers for tests: Kafka, ZooKeeper, S3 and PostgreSQL, on free ports, to be killed and frozen at will.

`make services` installs them; `docs/services.md` explains how to use them. `fixtures` has them as pytest fixtures.
Start reading with `base`: it says what every service can do. One file per service, and `registry` lists them. The rest
fetches the programs (`ivy`, `jars`, `lock`), finds free ports (`ports`) and runs the S3 server (`s3_server`).

May import `runtime.processes`, and `stream.java` and `stream.overlay` to find Java. Only tests import it.
"""

from __future__ import annotations

from understudy.testing.services.base import Service
from understudy.testing.services.kafka import Kafka
from understudy.testing.services.postgres import Postgres
from understudy.testing.services.registry import SERVICES, named
from understudy.testing.services.s3 import S3
from understudy.testing.services.zookeeper import ZooKeeper

__all__ = ["S3", "SERVICES", "Kafka", "Postgres", "Service", "ZooKeeper", "named"]
