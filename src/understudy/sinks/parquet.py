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
    """A sink that writes one Parquet file per epoch; any engine reads the directory as one table.

    Parameters
    ----------
    path : str or Path
        A directory for this sink alone. A relative path lies under ``HOME/out``. Epoch 12 becomes
        ``epoch-0000000012.parquet``; an epoch without rows is written too.

    Raises
    ------
    InvalidInput
        If the path is empty or is the address of another store, such as ``s3a://…``.

    Examples
    --------
    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> import understudy as us
    >>> writer = us.sinks.Parquet("counts").open("counts", Path.cwd(), run="1")
    >>> rows = pa.table({"word": ["a", "b"], "n": [3, 1]})
    >>> writer.write(0, rows).name, writer.write(0, rows).name
    ('ONCE', 'THERE')
    >>> sorted(path.name for path in Path("out/counts").glob("*.parquet"))
    ['epoch-0000000000.parquet']
    """

    path: str | Path

    def __post_init__(self) -> None:
        check_path(self.path)

    def directory(self) -> str | Path:
        """Returns `path`; see `Sink.directory`."""
        return self.path

    @property
    def takes_tentative(self) -> bool:
        """True: tentative epochs are files in the directory ``_tentative``; see `understudy.sinks.epochs`."""
        return True

    def open(self, name: str, home: Path, run: str) -> SinkWriter:
        """Opens the directory for a run; see `Sink.open`."""
        return DirectoryWriter(under(home, self.path), Owner(run, name), "parquet", encode)


def encode(rows: pa.Table) -> bytes:
    # One chunk: the bytes must not depend on how the rows happened to arrive.
    whole = rows.combine_chunks().replace_schema_metadata(None)
    stream = pa.BufferOutputStream()
    pyarrow.parquet.write_table(whole, stream, compression="zstd")
    return bytes(stream.getvalue())
