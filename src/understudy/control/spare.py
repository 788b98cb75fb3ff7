"""Spare capacity (seed 004, chapter 6): a secondary works with what its node's primaries leave over."""

from __future__ import annotations

from collections.abc import Iterable

TOO_FAR = 3
"""Epochs a primary may be behind its input before secondaries beside it sleep."""
CLOSE = 1
"""Epochs it may be behind when they go on: less than above, so that they do not blink."""


def sleep(asleep: bool, behind: Iterable[int]) -> bool:
    """Whether the secondaries of a node shall sleep, from how far its primaries are behind."""
    most = max(behind, default=0)
    return most >= TOO_FAR or (asleep and most > CLOSE)
