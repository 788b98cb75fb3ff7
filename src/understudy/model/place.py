"""A line of the user's file, so that an error can name it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """Prints as `app.py:12`, relative to the working directory where that is shorter."""

    file: str
    line: int

    def __str__(self) -> str:
        path = Path(self.file)
        cwd = Path.cwd()
        shown = path.relative_to(cwd) if path.is_absolute() and path.is_relative_to(cwd) else path
        return f"{shown}:{self.line}"


def caller(depth: int) -> Place:
    """Where the function that many calls above this one was called from; 1 is the caller of our caller."""
    frame = sys._getframe(depth + 1)
    return Place(frame.f_code.co_filename, frame.f_lineno)
