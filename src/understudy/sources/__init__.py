"""Where rows come from: generated, read from files, or through any PySpark data source."""

from __future__ import annotations

from understudy.sources import shapes
from understudy.sources.files import Files
from understudy.sources.generator import Generator
from understudy.sources.interface import EndOfSource, Source, SourceReader
from understudy.sources.reader import Reader

__all__ = ["EndOfSource", "Files", "Generator", "Reader", "Source", "SourceReader", "shapes"]
