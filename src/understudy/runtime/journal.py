"""Files that grow with the run: events as lines of JSON, and the output of processes. Both have a limit."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from understudy.coordination.interface import StateStore
from understudy.model.config import DEFAULTS
from understudy.model.events import Happening

logger = logging.getLogger(__name__)

_USUAL = DEFAULTS.retention


class Lines(Protocol):
    """Where events are written down one after the other: a `LineFile`, or a list in the simulated cluster."""

    def append(self, entry: Mapping[str, Any], /) -> None: ...


class Journal:
    """Writes down what happens: to the store, to the log, and to a file of lines."""

    def __init__(self, store: StateStore, lines: Lines, wall: Callable[[], float]) -> None:
        self._store, self._lines, self._wall = store, lines, wall

    def note(self, what: Happening, cause: int | None = None) -> int:
        """Returns the event's number, so that what follows can name it as its cause."""
        at, fields, text = self._wall(), what.to_fields(), what.text
        number = self._store.note(at, what.kind, text, fields, cause)
        logger.info("%s", text)
        entry = {"number": number, "at": at, "kind": what.kind, "text": text, "fields": fields, "cause": cause}
        self._lines.append(entry)
        return number


class LineFile:
    """Appends entries as lines of JSON. A file that is full becomes `….1`, in place of the one before, so at most two
    are there."""

    def __init__(self, path: Path, limit: int = _USUAL.journal_bytes) -> None:
        self._path, self._limit = path, limit

    def append(self, entry: Mapping[str, Any], /) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
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
