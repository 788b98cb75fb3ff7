"""Times as users write them."""

from __future__ import annotations

import re

from understudy.errors import InvalidInput

_SECONDS = {"ms": 0.001, "millisecond": 0.001, "s": 1.0, "second": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0}


def seconds(value: str | float) -> float:
    """A duration in seconds: a number, or text like "500 ms", "1 second", "2 minutes"."""
    if isinstance(value, int | float):
        return float(value)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", value) if isinstance(value, str) else None
    unit = (_SECONDS.get(match[2]) or _SECONDS.get(match[2].removesuffix("s"))) if match else None
    if match is None or unit is None:
        raise InvalidInput(
            f"{value!r} is not a duration",
            why="a number and a unit are expected",
            fix='write it like "500 ms" or "2 s"',
        )
    return float(match[1]) * unit
