"""Epochs as Parquet files; any engine reads the directory as one table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from understudy.sinks.directory import DirectoryWriter, Owner, check_path, under
from understudy.sinks.interface import Sink, SinkWriter


@dataclass(frozen=True)
class Parquet(Sink):
    """Writes `epoch-0000000012.parquet` and so on into the directory `path`, also for an epoch without rows."""

    path: str | Path

    def __post_init__(self) -> None:
        check_path(self.path)

    def directory(self) -> str | Path:
        return self.path

    def open(self, name: str, home: Path, run: str) -> SinkWriter:
        return DirectoryWriter(under(home, self.path), Owner(run, name), "parquet", encode)


def encode(rows: pa.Table) -> bytes:
    # One chunk: the bytes must not depend on how the rows happened to arrive.
    whole = rows.combine_chunks().replace_schema_metadata(None)
    stream = pa.BufferOutputStream()
    pyarrow.parquet.write_table(whole, stream, compression="zstd")
    return bytes(stream.getvalue())
