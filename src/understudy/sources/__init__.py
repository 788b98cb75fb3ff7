"""Where rows come from: generated, read from files, from Kafka, or through any PySpark data source.

- `interface`: what a source promises, so that an epoch can be read again. Start reading here to write one of your own;
- one file per source: `generator` (the shortest example), `files` with `formats`, `reader` with `rows`;
- `pace` turns a rate or event times into epochs; `shapes` are rates that change.

May import `model` and `errors`; never PySpark, because sources run in a node's Python process. A new source is one file
here and one line below; docs/sources-and-sinks.md says what it owes.
"""

from __future__ import annotations

from understudy.sources import shapes
from understudy.sources.files import Files
from understudy.sources.generator import Generator
from understudy.sources.interface import EndOfSource, Source, SourceReader
from understudy.sources.kafka import Kafka
from understudy.sources.reader import Reader

__all__ = ["EndOfSource", "Files", "Generator", "Kafka", "Reader", "Source", "SourceReader", "shapes"]
