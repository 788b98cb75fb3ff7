"""Something that happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from understudy.model.run import Frozen

PLACED = ("assigned", "promoted")
"""Kinds that say which node a slice has now."""
COUNT = ""
"""In the totals of a kind: how many there were."""
SUMMED: Mapping[str, tuple[str, ...]] = {
    "promoted": ("standing_in",),
    "rolled_back": ("stood_in_s", "false_alarm", "cpu_s", "bytes_received", "bytes_published", "bytes_shipped"),
}
"""Fields whose sums over the whole run are kept, by kind."""


class Event(Frozen):
    """In words and in fields; `cause` is the number of the event that led to it."""

    number: int
    at: float
    kind: str
    text: str
    fields: dict[str, Any]
    cause: int | None = None
