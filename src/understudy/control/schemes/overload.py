"""Spare capacity (Martin 2015, chapter 6): a secondary works with what its node's primaries leave over."""

from __future__ import annotations

from collections.abc import Iterable

from understudy.model.config import DEFAULTS, OverloadSection

LATE = 2
"""Epochs a secondary may not be behind its primary; one is what two that work at the same time may be apart."""


def late(primary: int, own: int, *, begun: bool) -> bool:
    """Whether a secondary that works would first have to catch up, from the newest epoch of its primary and its own."""
    return not begun or primary - own >= LATE


def throttle(throttled: bool, behind: Iterable[int], limits: OverloadSection = DEFAULTS.overload) -> bool:
    """Whether the secondaries of a node are throttled, from how far its primaries are behind."""
    most = max(behind, default=0)
    return most >= limits.behind_epochs or (throttled and most > limits.caught_up_epochs)
