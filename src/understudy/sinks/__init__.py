"""Where rows go: files, a function, the terminal, Kafka, tables. Every sink writes each epoch as one transaction.

- `interface`: what a sink promises: idempotent, all or nothing, durable. Start reading here to write one of your own;
- one file per sink: `parquet` and `jsonlines` on `directory` write exactly once; `call` and `console` on `note` deliver
  at least once.

May import `model`, `errors` and `log.disk`; never PySpark. A new sink is one file here and one line below;
docs/sources-and-sinks.md says what it owes.
"""

from __future__ import annotations

from understudy.sinks.call import Call
from understudy.sinks.console import Console
from understudy.sinks.delta import Delta
from understudy.sinks.directory import EpochFile, epochs
from understudy.sinks.iceberg import Iceberg
from understudy.sinks.interface import Sink, SinkWriter, Written
from understudy.sinks.jsonlines import JsonLines
from understudy.sinks.kafka import Kafka
from understudy.sinks.parquet import Parquet
from understudy.sinks.postgres import Postgres

__all__ = [
    "Call",
    "Console",
    "Delta",
    "EpochFile",
    "Iceberg",
    "JsonLines",
    "Kafka",
    "Parquet",
    "Postgres",
    "Sink",
    "SinkWriter",
    "Written",
    "epochs",
]
