"""Where rows go: files, a function, the terminal, databases. Every sink writes an epoch once, also after a failure."""

from __future__ import annotations

from understudy.sinks.call import Call
from understudy.sinks.console import Console
from understudy.sinks.delta import Delta
from understudy.sinks.iceberg import Iceberg
from understudy.sinks.interface import Sink, SinkWriter
from understudy.sinks.jsonlines import JsonLines
from understudy.sinks.kafka import Kafka
from understudy.sinks.parquet import Parquet
from understudy.sinks.postgres import Postgres

__all__ = ["Call", "Console", "Delta", "Iceberg", "JsonLines", "Kafka", "Parquet", "Postgres", "Sink", "SinkWriter"]
