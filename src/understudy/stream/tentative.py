"""Copies of what a sink has written tentatively, until the stable epoch has replaced it.

HOME/tentative/<sink>/0000000012.arrow. A copy is made before the target is written and removed after the target was
told to withdraw, so whoever is killed in between leaves a copy, and the stable sink withdraws the epoch.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from understudy.log.disk import TEMPORARY, Disk
from understudy.model import hashing
from understudy.model.messages import Correction


class TentativeCopies:
    """Shared by the fork of a sink and the stable sink, which may be on different nodes."""

    def __init__(self, directory: Path, disk: Disk) -> None:
        self._directory, self._disk = directory, disk

    def keep(self, epoch: int, rows: pa.Table) -> None:
        stream = pa.BufferOutputStream()
        with pa.ipc.new_file(stream, rows.schema) as writer:
            writer.write_table(rows)
        self._disk.replace(self._path(epoch), [stream.getvalue()])

    def until(self, epoch: int) -> list[int]:
        """The epochs up to this one that were written tentatively and not withdrawn."""
        found = (path for path in self._directory.glob("*.arrow") if not path.name.startswith(TEMPORARY))
        return sorted(number for number in (int(path.stem) for path in found) if number <= epoch)

    def compare(self, epoch: int, rows: pa.Table) -> Correction | None:
        """How the tentative rows compare with the stable ones; None if the copy cannot be read."""
        try:
            tentative = pa.ipc.open_file(pa.BufferReader(self._path(epoch).read_bytes())).read_all()
        except (OSError, pa.ArrowException):
            return None
        return compared(rows, tentative)

    def drop(self, epoch: int) -> None:
        with suppress(FileNotFoundError):
            self._path(epoch).unlink()

    def _path(self, epoch: int) -> Path:
        return self._directory / f"{epoch:010d}.arrow"


def compared(stable: pa.Table, tentative: pa.Table) -> Correction:
    """Rows count as often as they occur.

    >>> rows = pa.table({"n": [1, 1, 2]})
    >>> compared(rows, pa.table({"n": [1, 2, 2, 3]})).had
    2
    """
    there = Counter(hashing.row_hashes(stable).tolist())
    had = (there & Counter(hashing.row_hashes(tentative).tolist())).total()
    return Correction(rows=stable.num_rows, tentative_rows=tentative.num_rows, had=had)
