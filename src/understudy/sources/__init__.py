"""Where rows come from: generated, read from files, from Kafka, or through any PySpark data source."""

from __future__ import annotations

from understudy.sources import shapes
from understudy.sources.files import Files
from understudy.sources.generator import Generator
from understudy.sources.interface import EndOfSource, Source, SourceReader
from understudy.sources.kafka import Kafka
from understudy.sources.reader import Reader

__all__ = ["EndOfSource", "Files", "Generator", "Kafka", "Reader", "Source", "SourceReader", "shapes"]
