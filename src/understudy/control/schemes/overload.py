"""Spare capacity (Martin 2015, chapter 6): a secondary works with what its node's primaries leave over."""

from __future__ import annotations

from collections.abc import Iterable

TOO_FAR = 3
"""Epochs a primary may be behind its input before secondaries beside it are throttled."""
CLOSE = 1
"""Epochs it may be behind when they go on: less than above, so that they do not blink."""

LATE = 2
"""Epochs a secondary may not be behind its primary; one is what two that work at the same time may be apart."""


def late(primary: int, own: int, *, begun: bool) -> bool:
    """Whether a secondary that works would first have to catch up, from the newest epoch of its primary and its own."""
    return not begun or primary - own >= LATE


def throttle(throttled: bool, behind: Iterable[int]) -> bool:
    """Whether the secondaries of a node are throttled, from how far its primaries are behind."""
    most = max(behind, default=0)
    return most >= TOO_FAR or (throttled and most > CLOSE)
