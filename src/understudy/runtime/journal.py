"""Files that grow with the run: events as lines of JSON, and the output of processes. Both have a limit."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from understudy.model.config import DEFAULTS

_USUAL = DEFAULTS.retention


class Journal:
    """Appends lines. A file that is full becomes `….1`, in place of the one before; so at most two are there."""

    def __init__(self, path: Path, limit: int = _USUAL.journal_bytes) -> None:
        self._path, self._limit = path, limit

    def add(self, line: str) -> None:
        with self._path.open("a") as file:
            file.write(line + "\n")
            full = file.tell() >= self._limit
        if full:
            self._path.replace(earlier(self._path))


def earlier(path: Path) -> Path:
    """Where the part before the present one is kept."""
    return path.with_name(f"{path.name}.1")


def trim_outputs(outputs: Iterable[Path], limit: int = _USUAL.output_bytes) -> None:
    """Moves the content of files that processes are writing to `….1`, where it replaces what was there.

    They hold the file open and append to it, so it is copied and emptied; what they write in between is lost.
    """
    for path in outputs:
        with suppress(OSError):
            if path.stat().st_size >= limit:
                shutil.copyfile(path, earlier(path))
                os.truncate(path, 0)
